"""Charts as inline SVG, drawn for a width at which their text stays readable on a phone.

Every bar starts at zero and has its value written beside it. Colours come from the classes c0, c1, ... and
those of the systems, which style.css gives values for light and dark.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

_WIDTH = 360
_LABEL = 120  # the most that the labels of bars may take
_VALUE = 52  # room for a value behind the longest bar
_WIDE, _NARROW = 12.0, 6.4  # widths of a character at the size of the text


@dataclass(frozen=True)
class Chart:
    """A drawing with what is written above and below it."""

    title: str
    note: str
    svg: Markup
    legend: tuple[tuple[str, str], ...] = ()  # colour class, text


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    text: str  # the value as it is written
    colour: str


@dataclass(frozen=True)
class Group:
    """Bars under one heading."""

    label: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Stack:
    """A bar of parts, with a line of text above it: a label at the left and a value at the right."""

    label: str
    text: str
    parts: Sequence[tuple[float, str, str]]  # value, colour class, title


@dataclass(frozen=True)
class Steps:
    """Counts of one system in every bin of a histogram."""

    label: str
    colour: str
    counts: Sequence[int]


def grouped_bars(groups: Sequence[Group]) -> Markup:
    """Horizontal bars on one axis from zero."""
    top, ticks = _axis(max((bar.value for group in groups for bar in group.bars), default=0.0))
    left = min(max((_width(bar.label) for group in groups for bar in group.bars), default=0) + 8, _LABEL)
    scale = (_WIDTH - left - _VALUE) / top
    places = [left + tick * scale for tick in ticks]
    marks: list[Markup] = []
    y = 0
    for group in groups:
        marks.append(_text(0, y + 13, _fitted(group.label, _WIDTH), "strong"))
        y += 20
        bottom = y + 17 * len(group.bars)
        marks += [_line(x, y, x, bottom, "axis" if x == left else "grid") for x in places]
        for bar in group.bars:
            length = max(bar.value, 0) * scale
            marks += [
                _text(0, y + 12, _fitted(bar.label, left - 6)),
                _rect(left, y + 2, length, 13, bar.colour, f"{group.label}, {bar.label}: {bar.text}"),
                _text(left + length + 5, y + 12, bar.text),
            ]
            y += 17
        y += 8
    marks += [_text(x, y + 7, f"{tick:g}", "tick middle") for x, tick in zip(places, ticks, strict=True)]
    said = "; ".join(f"{group.label}: {', '.join(f'{b.label} {b.text}' for b in group.bars)}" for group in groups)
    return _svg(marks, y + 12, said)


def stacked_bars(stacks: Sequence[Stack], whole: float | None = None) -> Markup:
    """Horizontal bars of parts.

    Args:
        whole: what the full width stands for; None: the largest sum. 0: every bar is as wide as the chart.
    """
    sums = [sum(value for value, _, _ in stack.parts) for stack in stacks]
    widest = max(sums, default=0) if whole is None else whole
    marks: list[Markup] = []
    y = 0
    for stack, total in zip(stacks, sums, strict=True):
        room = _WIDTH - _width(stack.text) - 10
        marks += [_text(0, y + 13, _fitted(stack.label, room)), _text(_WIDTH, y + 13, stack.text, "end")]
        x = 0.0
        for value, colour, title in stack.parts:
            length = value / (widest or total or 1) * _WIDTH
            marks.append(_rect(x, y + 19, length, 12, colour, f"{stack.label}: {title}"))
            x += length
        y += 42
    return _svg(marks, y - 6, "; ".join(f"{stack.label}: {stack.text}" for stack in stacks))


def histogram(series: Sequence[Steps], ends: tuple[str, ...]) -> Markup:
    """The first series as bars with their counts, the others as outlines over them.

    Args:
        ends: what is written under the axis, evenly spread from the left edge of the first bin to that of the last.
    """
    left, height, bins = 32, 150, len(series[0].counts)
    step = (_WIDTH - left) / bins
    top, ticks = _axis(max(max(one.counts) for one in series), whole=True)
    scale = height / top
    floor = height + 14
    marks = [
        _line(left, floor - tick * scale, _WIDTH, floor - tick * scale, "grid" if tick else "axis") for tick in ticks
    ]
    marks += [_text(left - 4, floor - tick * scale + 4, f"{tick:g}", "tick end") for tick in ticks]
    first, *others = series
    for index, count in enumerate(first.counts):
        x = left + index * step
        marks.append(_rect(x + 1, floor - count * scale, step - 2, count * scale, first.colour, f"{count:,}"))
    for one in others:
        points = " ".join(
            f"{left + (index + side) * step:.1f},{floor - count * scale:.1f}"
            for index, count in enumerate(one.counts)
            for side in (0, 1)
        )
        marks.append(Markup('<polyline class="outline {}" points="{}"/>').format(one.colour, points))
    # After the outlines, so that those do not strike the counts out.
    for index, count in enumerate(first.counts):
        if count:
            highest = max(one.counts[index] for one in series)
            marks.append(_text(left + (index + 0.5) * step, floor - highest * scale - 3, f"{count}", "small middle"))
    for index, end in enumerate(ends):
        x = left + index * (_WIDTH - left - step) / (len(ends) - 1)
        marks += [_line(x, floor, x, floor + 4, "axis"), _text(x, floor + 16, end, "tick middle")]
    said = "; ".join(f"{one.label}: {', '.join(map(str, one.counts))}" for one in series)
    return _svg(marks, floor + 20, f"Counts from the left to the right. {said}")


def _axis(highest: float, whole: bool = False) -> tuple[float, list[float]]:
    """The end of an axis that holds `highest`, and its ticks from zero: one, two or five times a power of ten apart."""
    if highest <= 0:
        return 1.0, [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(highest / 4))
    step = next(power * times for times in (1, 2, 5, 10) if power * times * 5 >= highest)
    if whole:
        step = max(step, 1.0)
    steps = math.ceil(highest / step - 1e-9)
    return steps * step, [step * index for index in range(steps + 1)]


def _svg(marks: Iterable[Markup], height: float, said: str) -> Markup:
    # The viewBox begins left of zero, so that a tick's text centred on the edge is not cut.
    return Markup('<svg viewBox="-2 0 {} {:.0f}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH + 10, height, said, Markup("").join(marks)
    )


def _rect(x: float, y: float, width: float, height: float, colour: str, title: str) -> Markup:
    return Markup(
        '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
    ).format(colour, x, y, width, height, title)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(kind, x1, y1, x2, y2)


def _text(x: float, y: float, text: str, kind: str = "") -> Markup:
    return Markup('<text{} x="{:.1f}" y="{:.1f}">{}</text>').format(
        Markup(' class="{}"').format(kind) if kind else "", x, y, text
    )


def _width(text: str) -> float:
    return sum(_WIDE if unicodedata.east_asian_width(char) in "WF" else _NARROW for char in text)


def _fitted(text: str, width: float) -> str:
    if _width(text) <= width:
        return text
    ends = itertools.accumulate(_width(char) for char in text)
    return text[: sum(1 for _ in itertools.takewhile(lambda end: end <= width - _NARROW, ends))] + "…"
