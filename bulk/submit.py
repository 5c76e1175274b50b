"""A file into the queue, chunk by chunk, so that it can be broken off anywhere and gone on with."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NoReturn

from tqdm import tqdm

from bulk.aws import AwsError, Bucket, Queue, batches
from bulk.chunks import BYTES, SEGMENTS, chunks, message
from bulk.errors import BulkError
from bulk.formats import BYTE_ORDER_MARK, format_of, line_ending, naming, open_format
from bulk.jobs import Job, begin, default_name, finish, run_lengths, save

_CHUNKS_PER_SAVE = 100


@dataclass(frozen=True)
class Options:
    """What a user can say of a job besides its file and its name."""

    source: str = "en"
    target: str = "zh"
    column: str | None = None
    details: bool = False
    chunk_segments: int = SEGMENTS
    chunk_bytes: int = BYTES


def submit(path: Path, queue: Queue, bucket: Bucket, name: str | None, options: Options) -> Job:
    """Send a file's chunks, from where an earlier submission was broken off.

    The whole file is read and checked before anything is sent. How far the sending is, is kept in the bucket, so
    that another machine can go on too.

    Args:
        name: of the job; None for one made of the file's name and content.

    Raises:
        BulkError: the file cannot be sent, or the name stands for another job, or the queue takes no messages.
    """
    before = path.stat()
    job = examine(path, name, options)
    progress = begin(bucket, job)
    if progress.is_submitted:
        _say(f"{path} was submitted before, as job {job.name}: nothing is sent.")
        return job
    if progress.sent:
        _say(f"Going on with job {job.name} after {progress.sent} of {job.chunks} chunks.")
    _send(path, job, queue, bucket, progress.sent)
    after = path.stat()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise BulkError(f"{path} was changed while it was read: submit it under a new --job name.")
    finish(bucket, job)
    _say(f"Submitted {job.segments} segments of {path} in {job.chunks} chunks, as job {job.name}.")
    return job


def examine(path: Path, name: str | None, options: Options) -> Job:
    """Read a file to its end: what is in it, and whether all of it can be sent.

    Raises:
        BulkError: a row cannot be sent; the message names its line.
    """
    if not path.is_file():
        raise BulkError(f"{path} is not a file, which it must be to be read more than once.")
    format_name = format_of(path)
    format_ = open_format(format_name, options.column)
    facts = _Facts()
    with path.open("rb") as file, naming(path), _bytes_bar(path, "checking") as bar:
        rows = format_.rows(facts.watch(file, bar))
        sizes = run_lengths(len(chunk.texts) for chunk in chunks(rows, options.chunk_segments, options.chunk_bytes))
    sha256 = facts.digest.hexdigest()
    return Job(
        name=name or default_name(path, sha256, options.target),
        file=path.name,
        sha256=sha256,
        size=facts.size,
        format=format_name,
        column=options.column,
        source=options.source,
        target=options.target,
        details=options.details,
        chunk_segments=options.chunk_segments,
        chunk_bytes=options.chunk_bytes,
        lines=facts.lines,
        segments=sum(size * count for size, count in sizes),
        sizes=sizes,
        line_ending=facts.common_ending(),
        ends_with_newline=facts.last_ending != b"",
        byte_order_mark=facts.byte_order_mark,
    )


class _Facts:
    """What is to be known of a file's lines, gathered as they go by."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.size = 0
        self.lines = 0
        self.byte_order_mark = False
        self.last_ending = b""
        self._endings: set[bytes] = set()  # of all lines but the last

    def watch(self, lines: Iterable[bytes], bar: tqdm[NoReturn]) -> Iterator[bytes]:
        for line in lines:
            if self.lines:
                self._endings.add(self.last_ending)
            else:
                self.byte_order_mark = line.startswith(BYTE_ORDER_MARK)
            self.last_ending = line_ending(line)
            self.digest.update(line)
            self.size += len(line)
            self.lines += 1
            bar.update(len(line))
            yield line

    def common_ending(self) -> str | None:
        """How lines end, if all end alike; the last may lack its ending."""
        endings = self._endings | ({self.last_ending} - {b""})
        if len(endings) > 1:
            return None
        return next(iter(endings), b"\n").decode()


def _send(path: Path, job: Job, queue: Queue, bucket: Bucket, sent: int) -> None:
    """Send the chunks from number `sent` on; record the progress now and then, and when broken off."""
    saved = sent
    done = sum(islice(job.chunk_sizes(), sent))
    try:
        with (
            path.open("rb") as file,
            naming(path),
            tqdm(total=job.segments, initial=done, unit="segment", desc="submitting") as bar,
        ):
            rows = open_format(job.format, job.column).rows(file)
            unsent = islice(chunks(rows, job.chunk_segments, job.chunk_bytes), sent, None)
            for batch in batches((chunk, message(job, chunk, bucket.name)) for chunk in unsent):
                for chunk, _ in batch:
                    if chunk.is_stored:
                        bucket.write(job.input_key(chunk.index), chunk.texts[0].encode())
                queue.send([body for _, body in batch])
                sent += len(batch)
                bar.update(sum(len(chunk.texts) for chunk, _ in batch))
                if sent - saved >= _CHUNKS_PER_SAVE:
                    save(bucket, job, sent)
                    saved = sent
    finally:
        if sent != saved:
            with suppress(*AwsError):  # the chunks since the last time would be sent again, which harms nothing
                save(bucket, job, sent)


def _bytes_bar(path: Path, words: str) -> tqdm[NoReturn]:
    return tqdm(total=path.stat().st_size, unit="B", unit_scale=True, desc=words)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
