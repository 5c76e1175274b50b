"""Writes what is known of a model pack on one page that a person can open, search and judge by.

The page is a single file that loads nothing: style, script and charts stand in it, and a policy in its head
forbids the browser to fetch anything or to run any script but the page's own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from model_pack.errors import ModelPackError
from model_pack.report.inputs import read_evaluation, read_inspection, read_pack
from model_pack.report.page import render

__all__ = ["write_report"]


def write_report(evaluation: Path, packs: Mapping[str, Path], inspection: Path | None, out: Path) -> None:
    """Write the HTML page at `out`, replacing a file that stands there.

    The page is written beside `out` and takes its name only when it is whole.

    Args:
        evaluation: the evaluation's JSON file: provenance, and sets with their figures and all their sentences.
        packs: the name that the page uses -> the folder of the pack. May be empty.
        inspection: JSON with `numbers` and `remarks` on the checkpoint, or None.

    Raises:
        ModelPackError: an input is missing or is something else, or `out` cannot be written.
    """
    page = render(
        read_evaluation(evaluation),
        [read_pack(name, folder) for name, folder in packs.items()],
        None if inspection is None else read_inspection(inspection),
    )
    if out.is_dir():
        raise ModelPackError(f"{out} is a folder; name the HTML file that the report becomes.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as workspace:
            written = Path(workspace, "report.html")
            written.write_text(page, "utf-8", newline="\n")
            written.replace(out)
    except OSError as error:
        raise ModelPackError(f"{out} cannot be written: {error.strerror}.") from error
