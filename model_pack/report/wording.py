"""Numbers and names as the page writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SYSTEM_NAMES = {"baseline": "baseline", "fp32": "FP32", "int8": "INT8", "baseline-beam": "baseline, beam"}


def system_name(system: str) -> str:
    return SYSTEM_NAMES.get(system, system)


def count(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else number(value)


def score(value: float) -> str:
    return f"{value:.2f}"


def share(value: float) -> str:
    """Of 0 to 1, in per cent; never rounded to all or to nothing, because those are what one looks for."""
    if 0 < value < 1:
        value = min(max(value, 0.001), 0.999)
    return f"{value:.1%}"


def ratio(value: float) -> str:
    return f"{value:.3f}"


def milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def size(value: int) -> str:
    return f"{value / 1e6:,.1f} MB" if value >= 1e6 else f"{value / 1e3:.1f} kB" if value >= 1e3 else f"{value} bytes"


def number(value: float) -> str:
    """A number of a kind that the page does not know."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.0f}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"


def signed(value: float, write: Callable[[float], str] = score) -> str:
    text = write(abs(value))
    if not text.strip("0.%"):
        return "±" + text
    return ("−" if value < 0 else "+") + text


def plural(word: str, number: float) -> str:
    return word if number == 1 else word + "s"


def of(part: int, whole: int) -> str:
    return f"{count(part)} of {count(whole)}"


def plain(value: Any) -> str:
    """Any JSON value, in words that fit into a table cell."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list):
        return ", ".join(map(plain, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {plain(one)}" for name, one in value.items()) or "none"
    return str(value)


def flattened(content: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested objects as one level of dotted names; no object is too deep, because JSON's reader has a limit."""
    flat: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, dict) and value:
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = plain(value)
    return flat


@dataclass(frozen=True)
class Figure:
    """How the page names and writes a figure of the evaluation."""

    label: str
    write: Callable[[float], str]


FIGURES = {
    "chrf": Figure("chrF", score),
    "bleu": Figure("BLEU", score),
    "identical_to_fp32": Figure("same as FP32", share),
    "identical_to_baseline": Figure("same as baseline", share),
    "length_ratio": Figure("length / reference", ratio),
    "length_ratio_to_baseline": Figure("length / baseline", ratio),
    "loops": Figure("loops", count),
    "empty": Figure("empty", count),
    "refused": Figure("refused", count),
    "milliseconds": Figure("ms a sentence", milliseconds),
}


def figure(figures: Mapping[str, float], name: str) -> str:
    """The figure of this name as it is written; a dash where there is none."""
    if name not in figures:
        return "–"
    return (FIGURES[name].write if name in FIGURES else number)(figures[name])
