"""The files that are translated: rows in, the same rows with what was added to them out.

Rows are kept as the bytes they came as, and only added to: quotes, escapes, numbers and line endings stay.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bulk.errors import BulkError

Fields = Mapping[str, Any]  # what is added to a row, by name; a row of text takes the first alone

# A quotation mark that is never closed would take the rest of the file for one field.
_MAX_CSV_FIELD = 16 * 1024 * 1024

BYTE_ORDER_MARK = codecs.BOM_UTF8


class RowError(Exception):
    """A row that cannot be read, or not be added to."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.line = line


@dataclass(frozen=True)
class Row:
    """A row as it was read: its first line's number, its bytes, and its text, which headers and blank rows lack."""

    line: int
    raw: bytes
    text: str | None
    is_header: bool = False


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn errors of rows into errors that also name the file."""
    try:
        yield
    except RowError as error:
        raise BulkError(f"{path}, line {error.line}: {error}.") from error


class Format(Protocol):
    def rows(self, lines: Iterable[bytes]) -> Iterator[Row]:
        """Read rows from lines that end with "\\n". Raises: RowError."""

    def added_to(self, row: Row, fields: Fields) -> bytes:
        """The row with `fields` after its own, or with their names where it is the header. Raises: RowError."""

    def alone(self, fields: Fields, ending: bytes) -> bytes:
        """A row that has nothing but `fields`."""

    def header(self, fields: Fields, ending: bytes) -> bytes:
        """The header of such rows; empty where the format has none."""


class Text:
    """A text a line. A line that holds nothing is a text too."""

    def rows(self, lines: Iterable[bytes]) -> Iterator[Row]:
        for number, raw in enumerate(lines, start=1):
            yield Row(number, raw, _decode(_content(raw), number))

    def added_to(self, row: Row, fields: Fields) -> bytes:
        mark = BYTE_ORDER_MARK if row.line == 1 and row.raw.startswith(BYTE_ORDER_MARK) else b""
        return mark + self.alone(fields, line_ending(row.raw))

    def alone(self, fields: Fields, ending: bytes) -> bytes:
        return _on_one_line(next(iter(fields.values()))).encode() + ending

    def header(self, fields: Fields, ending: bytes) -> bytes:  # noqa: ARG002
        return b""


class JsonLines:
    """A JSON object a line, its text under one of the keys. Blank lines stay as they are."""

    def __init__(self, column: str) -> None:
        self._column = column

    def rows(self, lines: Iterable[bytes]) -> Iterator[Row]:
        for number, raw in enumerate(lines, start=1):
            yield Row(number, raw, self._text(number, raw) if raw.strip() else None)

    def added_to(self, row: Row, fields: Fields) -> bytes:
        if row.text is None:
            return row.raw
        taken = [name for name in fields if name in _json_object(row.line, row.raw)]
        if taken:
            raise _taken(row.line, taken[0])
        content = row.raw.rstrip()
        # The object is not empty: it has the text.
        added = _json(fields).removeprefix(b"{")
        return content[:-1].rstrip() + b", " + added + row.raw[len(content) :]

    def alone(self, fields: Fields, ending: bytes) -> bytes:
        return _json(fields) + ending

    def header(self, fields: Fields, ending: bytes) -> bytes:  # noqa: ARG002
        return b""

    def _text(self, line: int, raw: bytes) -> str:
        fields = _json_object(line, raw)
        if self._column not in fields:
            raise RowError(line, f"there is no key {self._column!r}; the keys are {_names(list(fields))}")
        text = fields[self._column]
        if not isinstance(text, str):
            raise RowError(line, f"{self._column!r} must be a string, it is {json.dumps(text)[:40]}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise RowError(line, f"{self._column!r} holds half of a character: a lone surrogate escape") from None
        return text


class Table:
    """Rows of fields with a header: `.csv`, quoted where need be, or `.tsv`, where quotation marks mean nothing."""

    def __init__(self, column: str, *, tabs: bool) -> None:
        self._column = column
        self._tabs = tabs

    def rows(self, lines: Iterable[bytes]) -> Iterator[Row]:
        records = _tab_separated(lines) if self._tabs else _comma_separated(lines)
        line, raw, header = next(records, (1, b"", []))
        if not header:
            raise RowError(1, "the first line must name the columns, and it is empty")
        if header.count(self._column) != 1:
            problem = "is more than one" if self._column in header else "is no"
            raise RowError(1, f"there {problem} column {self._column!r}; the columns are {_names(header)}")
        index = header.index(self._column)
        yield Row(line, raw, None, is_header=True)
        for line, raw, fields in records:
            if fields and len(fields) != len(header):
                raise RowError(line, f"the row has {len(fields)} fields and the header {len(header)}")
            yield Row(line, raw, fields[index] if fields else None)

    def added_to(self, row: Row, fields: Fields) -> bytes:
        if row.is_header:
            records = _tab_separated([row.raw]) if self._tabs else _comma_separated(row.raw.splitlines(keepends=True))
            _, _, header = next(records)
            for name in fields:
                if name in header:
                    raise _taken(row.line, name)
        elif row.text is None:
            return row.raw
        ending = line_ending(row.raw)
        content = row.raw.removesuffix(ending)
        return content + self._separator.encode() + self._join(fields if row.is_header else fields.values()) + ending

    def alone(self, fields: Fields, ending: bytes) -> bytes:
        # A row of one empty field would be a blank row.
        return (self._join(fields.values()) or (b"" if self._tabs else b'""')) + ending

    def header(self, fields: Fields, ending: bytes) -> bytes:
        return self._join(fields) + ending

    @property
    def _separator(self) -> str:
        return "\t" if self._tabs else ","

    def _join(self, values: Iterable[Any]) -> bytes:
        texts = ["" if value is None else str(value) for value in values]
        written = [_on_one_line(text).replace("\t", " ") if self._tabs else _quoted(text) for text in texts]
        return self._separator.join(written).encode()


def format_of(path: Path) -> str:
    """The name of a file's format, told by its suffix."""
    names = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv"}
    return names.get(path.suffix.lower(), "text")


def open_format(name: str, column: str | None) -> Format:
    """Raises: BulkError: a format that has columns needs one, and text has none."""
    if name == "text":
        if column is not None:
            raise BulkError("--column is for .jsonl, .csv and .tsv; of any other file, every line is translated.")
        return Text()
    if column is None:
        raise BulkError(f"say with --column which {'key' if name == 'jsonl' else 'column'} holds the text.")
    return JsonLines(column) if name == "jsonl" else Table(column, tabs=name == "tsv")


def line_ending(raw: bytes) -> bytes:
    return raw[len(_content(raw)) :]


def _comma_separated(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes, list[str]]]:
    """Records of quoted fields, which may run over many lines: first line's number, bytes, fields."""
    csv.field_size_limit(_MAX_CSV_FIELD)
    taken: list[bytes] = []  # the lines of the record that is being read

    def texts() -> Iterator[str]:
        for number, raw in enumerate(lines, start=1):
            taken.append(raw)
            yield _decode(raw, number)

    reader = csv.reader(texts(), strict=True)
    first = 1
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise RowError(first, f"the row cannot be read: {error} (line {reader.line_num})") from error
        if fields is None:
            return
        yield first, b"".join(taken), fields
        taken.clear()
        first = reader.line_num + 1


def _tab_separated(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes, list[str]]]:
    for number, raw in enumerate(lines, start=1):
        content = _content(raw)
        yield number, raw, _decode(content, number).split("\t") if content else []


def _json_object(line: int, raw: bytes) -> dict[str, Any]:
    text = _decode(raw, line)
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RowError(line, f"it is not valid JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RowError(line, "it must be a JSON object")
    return fields


def _decode(raw: bytes, line: int) -> str:
    try:
        return raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise RowError(line, "it is not UTF-8: convert the file, for instance with iconv") from error


def _content(raw: bytes) -> bytes:
    return raw.rstrip(b"\r\n")


def _on_one_line(text: str) -> str:
    """Lines must stay in step, whatever a model writes."""
    return text.replace("\r", " ").replace("\n", " ")


def _json(fields: Fields) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _taken(line: int, name: str) -> RowError:
    return RowError(line, f"there is a {name!r} already: give what is added another name with --into")
