"""What collecting writes: rows with their translations, into a file that gets its name when it is complete."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from bulk.formats import BYTE_ORDER_MARK, Row, naming, open_format
from bulk.jobs import Job
from bulk.results import Result

OnError = Literal["stop", "source", "blank"]

_CHUNKS_PER_SAVE = 100


@dataclass(frozen=True)
class Style:
    """How the output is to look.

    Args:
        input: the file that was submitted, to add to its rows; None for the translations alone.
        into: what the translation is called where fields have names.
        on_error: what stands in place of a translation that failed.
    """

    input: Path | None = None
    into: str = "translation"
    on_error: OnError = "stop"


class Rows(Protocol):
    """Turns the results of chunks into the bytes of the output."""

    def start(self) -> bytes:
        """What stands before the first chunk."""

    def chunk(self, size: int, result: Result) -> bytes:
        """The rows of the next chunk, which has `size` segments."""

    def end(self) -> bytes:
        """What stands after the last chunk."""


def open_rows(job: Job, style: Style, done: int) -> Rows:
    """
    Args:
        done: segments that have been written before.

    Raises:
        BulkError: the input cannot be read.
    """
    return _InputRows(job, style, style.input, done) if style.input else _BareRows(job, style, done)


class _InputRows:
    """The rows of the file that was submitted, with their translations."""

    def __init__(self, job: Job, style: Style, path: Path, done: int) -> None:
        self._job = job
        self._style = style
        self._path = path
        self._format = open_format(job.format, job.column)
        self._rows = self._read()
        while done:
            done -= next(self._rows).text is not None

    def start(self) -> bytes:
        return b""

    def chunk(self, size: int, result: Result) -> bytes:
        written: list[bytes] = []
        number = 0
        with naming(self._path):
            while number < size:
                row = next(self._rows)
                written.append(self._format.added_to(row, _fields(self._job, self._style, result, number, row.text)))
                number += row.text is not None
        return b"".join(written)

    def end(self) -> bytes:
        nothing = _fields(self._job, self._style, Result([""]), 0, None)
        with naming(self._path):
            return b"".join(self._format.added_to(row, nothing) for row in self._rows)

    def _read(self) -> Iterator[Row]:
        with self._path.open("rb") as file, naming(self._path):
            yield from self._format.rows(file)


class _BareRows:
    """Translations alone, in the format of the file that was submitted."""

    def __init__(self, job: Job, style: Style, done: int) -> None:
        self._job = job
        self._style = style
        self._format = open_format(job.format, job.column)
        self._ending = (job.line_ending or "\n").encode()
        self._left = job.segments - done

    def start(self) -> bytes:
        if self._job.format == "text":
            return BYTE_ORDER_MARK if self._job.byte_order_mark else b""
        return self._format.header(_fields(self._job, self._style, Result([""]), 0, None), self._ending)

    def chunk(self, size: int, result: Result) -> bytes:
        written: list[bytes] = []
        for number in range(size):
            self._left -= 1
            is_open = not self._left and self._job.format == "text" and not self._job.ends_with_newline
            fields = _fields(self._job, self._style, result, number, None)
            written.append(self._format.alone(fields, b"" if is_open else self._ending))
        return b"".join(written)

    def end(self) -> bytes:
        return b""


def _fields(job: Job, style: Style, result: Result, number: int, source: str | None) -> dict[str, Any]:
    """What is added to the row of a chunk's segment."""
    instead = (source or "") if style.on_error == "source" else ""
    text = result.texts[number] if result.error is None else instead
    if not job.details:
        return {style.into: text}
    return {style.into: text, f"{style.into}_score": result.scores[number] if result.scores else None}


@dataclass
class State:
    """How far the output is, and of what."""

    job: str
    sha256: str
    has_input: bool
    into: str
    on_error: str
    chunks: int = 0
    bytes: int = 0
    failed: int = 0  # chunks


class Part:
    """The output while it is not complete, and beside it how far it is; another process can go on with both."""

    def __init__(self, out: Path, job: Job, style: Style) -> None:
        self.path = out.with_name(f"{out.name}.part")
        self._out = out
        self._state_path = out.with_name(f"{out.name}.part.json")
        fresh = State(job.name, job.sha256, style.input is not None, style.into, style.on_error)
        self.state = self._earlier(fresh) or fresh
        self._saved = self.state.chunks
        self._is_complete = False
        self._file = self.path.open("r+b" if self.state.bytes else "wb")
        # What was written after the state was saved is written again.
        self._file.truncate(self.state.bytes)
        self._file.seek(self.state.bytes)

    def append(self, content: bytes, *, chunks: int = 0, failed: int = 0) -> None:
        self._file.write(content)
        self.state.bytes += len(content)
        self.state.chunks += chunks
        self.state.failed += failed
        if self.state.chunks - self._saved >= _CHUNKS_PER_SAVE:
            self._save()

    def close(self) -> None:
        """Leave it, to be gone on with unless it is complete."""
        if not self._is_complete:
            self._save()
        self._file.close()

    def complete(self, end: bytes) -> None:
        """Write what stands last, and give the file its name."""
        self._save()  # before `end`, which would stand twice if this were broken off here
        self._file.write(end)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.path.replace(self._out)
        self._state_path.unlink()
        self._is_complete = True

    def _save(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        new = self._state_path.with_name(f"{self._state_path.name}.new")
        new.write_text(json.dumps(asdict(self.state)), "utf-8")
        new.replace(self._state_path)
        self._saved = self.state.chunks

    def _earlier(self, fresh: State) -> State | None:
        """The state of an earlier call that this one can go on after."""
        try:
            state = State(**json.loads(self._state_path.read_text("utf-8")))
            is_whole = self.path.stat().st_size >= state.bytes
        except (OSError, ValueError, TypeError):
            return None
        if not state.failed:  # what is to stand in place of failures has made no difference yet
            state.on_error = fresh.on_error
        same = (state.job, state.sha256, state.has_input, state.into, state.on_error)
        wanted = (fresh.job, fresh.sha256, fresh.has_input, fresh.into, fresh.on_error)
        return state if is_whole and same == wanted else None
