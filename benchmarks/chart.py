"""bench.svg, the chart for the README: `python -m benchmarks.chart bench.json bench.svg`.

It runs in the peers' environment, which has matplotlib.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.plan import MAIN_SHAPE, OPUS, THREADS, Row
from benchmarks.records import from_json
from benchmarks.results import BenchResult, RowResult

_BATCHES = (1, 32)
_OURS, _OTHERS, _INK, _LINES = "#1f6f78", "#b8bfc6", "#24292f", "#d0d7de"


def draw(result: BenchResult, out: Path) -> None:
    """Horizontal bars, a panel for each batch; systems in one order, the fastest of the first panel on top.

    Raises:
        ValueError: none of the rows that it shows was measured.
    """
    import matplotlib  # noqa: PLC0415

    matplotlib.use("svg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    rows = [row for batch in _BATCHES if (row := _row(result, batch))]
    if not rows:
        raise ValueError("no row that the chart shows was measured")
    systems = _order(rows)
    matplotlib.rcParams |= {"svg.hashsalt": "bench", "font.size": 10, "text.color": _INK, "axes.labelcolor": _INK}
    figure, panels = plt.subplots(1, len(rows), figsize=(5.6 * len(rows), 0.42 * len(systems) + 1.3), sharey=True)
    for panel, row in zip([panels] if len(rows) == 1 else panels, rows, strict=True):
        _draw_panel(panel, row, systems)
    source, target = MAIN_SHAPE
    title = f"ms a sentence, {source} source and {target} target tokens, {rows[0].row.threads} threads"
    figure.suptitle(f"{title}: less is better", x=0.01, ha="left", fontsize=11)
    figure.tight_layout()
    figure.savefig(out, format="svg", metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def _row(result: BenchResult, batch: int) -> RowResult | None:
    row = result.row(Row(OPUS, max(THREADS), batch, *MAIN_SHAPE))
    return row if row and any(found.samples for found in row.measurements) else None


def _order(rows: list[RowResult]) -> list[str]:
    """The slowest first: bars are stacked from the bottom."""

    def key(system: str) -> float:
        values = [spread.median for row in rows if (spread := row.milliseconds(system))]
        return values[0]

    names = dict.fromkeys(found.system for row in rows for found in row.measurements if found.samples)
    return sorted(names, key=key, reverse=True)


def _draw_panel(panel: Any, row: RowResult, systems: list[str]) -> None:
    for position, system in enumerate(systems):
        value = row.milliseconds(system)
        if value is None:
            continue
        is_ours = system.startswith("ours")
        panel.barh(position, value.median, height=0.66, color=_OURS if is_ours else _OTHERS)
        weight = "bold" if is_ours else "normal"
        label = f" {value.median:.0f}" if value.median >= 100 else f" {value.median:.1f}"
        panel.text(value.median, position, label, va="center", fontsize=9, fontweight=weight)
    panel.set_yticks(range(len(systems)), systems)
    panel.set_title(f"batch {row.row.batch}" if row.row.batch > 1 else "one sentence", loc="left", fontsize=10)
    panel.margins(x=0.14)
    panel.set_xlim(left=0)
    panel.grid(axis="x", color=_LINES, linewidth=0.6)
    panel.set_axisbelow(True)
    panel.tick_params(length=0)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.spines["bottom"].set_color(_LINES)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chart", description="Draw the chart of a result.")
    parser.add_argument("result", type=Path, help="bench.json")
    parser.add_argument("out", type=Path, help="the SVG file to write")
    arguments = parser.parse_args()
    draw(from_json(BenchResult, json.loads(arguments.result.read_text("utf-8"))), arguments.out)


if __name__ == "__main__":
    main()
