"""Reads the sentences that packs are evaluated on, and refuses files that could be misread."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from model_pack.errors import ModelPackError

EVALSET = Path(__file__).parent / "evalset" / "sentences.tsv"


@dataclass(frozen=True)
class Segment:
    """One text to translate, and what is known of it."""

    id: str
    source: str
    reference: str | None
    category: str | None


def base_code(language: str) -> str:
    """The language alone of a BCP 47 code: "zh-Hans" -> "zh"."""
    return language.partition("-")[0].lower()


def read_tsv(path: Path, source_language: str = "en", target_language: str = "zh") -> list[Segment]:
    """Read tab-separated UTF-8 with a header row; quotation marks are ordinary characters, blank lines are skipped.

    The source stands in the column named after its language's code, or else in `source`; the reference,
    if there is one, in that of the target language's code, or else in `reference`. The code comes first because
    `source` may also say where a sentence was taken from. Line numbers serve as ids without a column `id`.

    Args:
        source_language: BCP 47 code; only the language counts, not the script or the region.
        target_language: the same.

    Raises:
        ModelPackError: the file cannot be read, or lacks a source column or sentences, or a row is malformed.
    """
    rows = csv.reader(io.StringIO(_read(path), newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    segments: list[Segment] = []
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        if not header:
            raise ModelPackError(f"{path} is empty: the first line must name the columns.")
        repeated = [name for name, count in Counter(header).items() if count > 1]
        if repeated:
            raise ModelPackError(f"{path} has more than one column named {repeated[0]!r}; rename all but one.")
        source_names = (base_code(source_language), "source")
        source, reference = (
            next((header.index(name) for name in names if name in header), None)
            for names in (source_names, (base_code(target_language), "reference"))
        )
        if source is None:
            raise ModelPackError(
                f"{path} has no column named {' or '.join(map(repr, source_names))} for the sentences to translate; "
                f"its columns are {', '.join(map(repr, header))}."
            )
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise ModelPackError(
                    f"{path}, line {rows.line_num}, has {len(row)} fields and the header {len(header)}; "
                    "fields are separated by single tabs and cannot hold any."
                )
            fields = dict(zip(header, row, strict=True))
            segments.append(
                Segment(
                    id=fields.get("id", str(rows.line_num)),
                    source=row[source],
                    reference=row[reference] or None if reference is not None else None,
                    category=fields.get("category") or None,
                )
            )
    except csv.Error as error:
        raise ModelPackError(f"{path}, line {rows.line_num}, cannot be read: {error}.") from error
    if not segments:
        raise ModelPackError(f"{path} is empty: it has a header and no rows.")
    _check_ids(segments, path)
    return segments


def read_text_pair(source_path: Path, reference_path: Path | None) -> list[Segment]:
    """Read plain UTF-8 text, a segment a line, with the references on the same lines of another file.

    Line numbers serve as ids. An empty line of the references means that there is none.

    Raises:
        ModelPackError: a file cannot be read or is empty, or the two do not have the same number of lines.
    """
    sources = _lines(source_path)
    references = _lines(reference_path) if reference_path else [""] * len(sources)
    if len(sources) != len(references):
        raise ModelPackError(
            f"{source_path} has {len(sources)} lines and {reference_path} has {len(references)}: "
            "line by line, one must be the translation of the other."
        )
    return [
        Segment(str(number), source, reference or None, None)
        for number, (source, reference) in enumerate(zip(sources, references, strict=True), start=1)
    ]


def _check_ids(segments: Sequence[Segment], path: Path) -> None:
    counts = Counter(segment.id for segment in segments)
    if "" in counts:
        raise ModelPackError(f"{path} has a row without an id: fill the column `id`, or leave it out altogether.")
    repeated = [id_ for id_, count in counts.items() if count > 1]
    if repeated:
        more = f", as do {len(repeated) - 1} more" if len(repeated) > 1 else ""
        raise ModelPackError(f"{path}: the id {repeated[0]!r} stands in more than one row{more}; ids must be unique.")


def _lines(path: Path) -> list[str]:
    # Not splitlines(): a line separator such as U+2028 within a line would shift all that follow.
    lines = [line.removesuffix("\r") for line in _read(path).split("\n")]
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise ModelPackError(f"{path} is empty: it must have a sentence a line.")
    return lines


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ModelPackError(f"there is no file {path}.") from error
    except UnicodeDecodeError as error:
        raise ModelPackError(
            f"{path} is not UTF-8 (byte {error.start}): convert it, for instance with iconv."
        ) from error
    except OSError as error:
        raise ModelPackError(f"{path} cannot be read: {error.strerror}.") from error
