"""What a job is, and where in the bucket its objects are.

| object                  | what it is                                                               |
| ----------------------- | ------------------------------------------------------------------------ |
| `JOB/progress.json`     | the job while it is submitted: the manifest and the number of chunks sent |
| `JOB/job.json`          | the manifest, written when all has been sent                             |
| `JOB/ID.json`           | the result of a chunk, written by the function, once                     |
| `JOB/ID.error.json`     | why a chunk has none, written by the function                            |
| `inputs/JOB/ID.txt`     | the text of a chunk that is too long for a message                       |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from bulk.aws import Bucket
from bulk.errors import BulkError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

_VERSION = 1

# What decides the chunks and what becomes of them, and how a user gives it.
_OPTIONS = {
    "source": "--source", "target": "--target", "column": "--column", "details": "--details",
    "chunk_segments": "--chunk-segments", "chunk_bytes": "--chunk-bytes",
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A file and what is to become of it. A name stands for one job and never for another."""

    name: str
    file: str
    sha256: str
    size: int  # bytes
    format: str
    column: str | None
    source: str
    target: str
    details: bool
    chunk_segments: int
    chunk_bytes: int
    lines: int
    segments: int
    sizes: tuple[tuple[int, int], ...]  # segments of a chunk, and how many such chunks follow each other
    line_ending: str | None  # None where lines end in different ways
    ends_with_newline: bool
    byte_order_mark: bool

    @property
    def chunks(self) -> int:
        return sum(count for _, count in self.sizes)

    def chunk_sizes(self) -> Iterator[int]:
        """The number of segments of each chunk."""
        for size, count in self.sizes:
            for _ in range(count):
                yield size

    def key(self, index: int) -> str:
        """Where the result of a chunk is."""
        return f"{self.name}/{chunk_id(index)}.json"

    def error_key(self, index: int) -> str:
        return error_key(self.name, chunk_id(index))

    def input_key(self, index: int) -> str:
        return f"inputs/{self.name}/{chunk_id(index)}.txt"


@dataclass(frozen=True)
class Progress:
    """A job, and how many of its chunks have been sent."""

    job: Job
    sent: int
    is_submitted: bool


def chunk_id(index: int) -> str:
    return f"{index:08}"


def error_key(job: str, id_: str) -> str:
    return f"{job}/{id_}.error.json"


def run_lengths(sizes: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The form of `Job.sizes`."""
    return tuple((size, sum(1 for _ in group)) for size, group in groupby(sizes))


def default_name(file: Path, sha256: str, target: str) -> str:
    """A name that tells the file and its content, so that a changed file makes another job."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", file.stem).lstrip("._-")[:80] or "job"
    return f"{stem}-{re.sub(r'[^A-Za-z0-9]+', '-', target)[:20]}-{sha256[:12]}"


def read_progress(bucket: Bucket, name: str) -> Progress | None:
    """How far the job's submission is; None where it has not been begun.

    Raises:
        BulkError: what is there was written by something else.
    """
    for key, is_submitted in ((f"{name}/job.json", True), (f"{name}/progress.json", False)):
        content = bucket.read(key)
        if content is not None:
            return _parse(content, f"s3://{bucket.name}/{key}", is_submitted)
    return None


def read_job(bucket: Bucket, name: str) -> Progress:
    """Raises: BulkError: there is no such job."""
    progress = read_progress(bucket, name)
    if progress is None:
        raise BulkError(f"the bucket {bucket.name} has no job {name}: check --job and --bucket.")
    return progress


def begin(bucket: Bucket, job: Job) -> Progress:
    """Record that the job is begun, or find how far it is.

    Raises:
        BulkError: the name stands for another job.
    """
    for _ in range(2):
        progress = read_progress(bucket, job.name)
        if progress is not None:
            _check_same(progress.job, job)
            return progress
        # Only if it is not there: another submission may have begun since.
        if bucket.create(f"{job.name}/progress.json", _text(job, sent=0)):
            return Progress(job, 0, False)
    raise BulkError(f"the job {job.name} is being begun by someone else: try again.")


def save(bucket: Bucket, job: Job, sent: int) -> None:
    bucket.write(f"{job.name}/progress.json", _text(job, sent=sent))


def finish(bucket: Bucket, job: Job) -> None:
    """Write the manifest."""
    bucket.write(f"{job.name}/job.json", _text(job))
    bucket.delete(f"{job.name}/progress.json")


def _check_same(begun: Job, job: Job) -> None:
    if begun.sha256 != job.sha256:
        raise BulkError(
            f"the job {job.name} was begun with another {begun.file} (sha256 {begun.sha256[:12]}..., this one's is "
            f"{job.sha256[:12]}...): for a file that has changed, give --job a new name."
        )
    for name, option in _OPTIONS.items():
        if getattr(begun, name) != getattr(job, name):
            raise BulkError(
                f"the job {job.name} was begun with {_written(option, getattr(begun, name))}, not with "
                f"{_written(option, getattr(job, name))}: give the same, or --job a new name."
            )
    if begun.sizes != job.sizes or begun.format != job.format:
        raise BulkError(f"the job {job.name} was begun by a version that chunks in another way: give --job a new name.")


def _written(option: str, value: Any) -> str:
    if value in (None, False):
        return f"no {option}"
    return option if value is True else f"{option} {value}"


def _text(job: Job, **more: int) -> bytes:
    return json.dumps({"version": _VERSION, **asdict(job), "chunks": job.chunks, **more}, ensure_ascii=False).encode()


def _parse(content: bytes, place: str, is_submitted: bool) -> Progress:
    try:
        values = json.loads(content)
        if values["version"] != _VERSION:
            raise BulkError(f"{place} has version {values['version']}, and this client knows {_VERSION}: update it.")
        known = {field.name: values[field.name] for field in fields(Job)}
        job = Job(**{**known, "sizes": tuple((size, count) for size, count in values["sizes"])})
        return Progress(job, job.chunks if is_submitted else values["sent"], is_submitted)
    except (ValueError, KeyError, TypeError) as error:
        raise BulkError(f"{place} is not the manifest of a job: it was written by something else.") from error
