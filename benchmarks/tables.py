"""Markdown tables, and how a figure stands in them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.samples import Spread

NONE = "–"


def spread_text(value: Spread | None, digits: int, unit: str = "") -> str:
    """The median, and in brackets the quartiles where there is more than one sample."""
    if value is None:
        return NONE
    quartiles = f" [{value.low:.{digits}f}–{value.high:.{digits}f}]" if value.count > 1 else ""
    return f"{value.median:.{digits}f}{unit}{quartiles}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
