"""How far a job is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from bulk.aws import Bucket, Queue
from bulk.jobs import Job, chunk_id, read_job

FINISHED = 0
FAILED = 1
NOT_YET = 3

_SHOWN = 5  # failures told in full
_RESULT = re.compile(r"([0-9]{8,})(\.error)?\.json")


@dataclass
class Tally:
    """What the bucket has of a job's results."""

    done: int = 0
    failed: int = 0
    first_failed: list[int] = field(default_factory=list)  # chunks


def status(bucket: Bucket, name: str, queue: Queue | None, say: Callable[[str], None]) -> int:
    """Tell how far a job is.

    Returns:
        FINISHED, FAILED (a chunk or more has failed) or NOT_YET.

    Raises:
        BulkError: there is no such job.
    """
    progress = read_job(bucket, name)
    job = progress.job
    say(f"job {name}: {job.file}, {job.segments} segments in {job.chunks} chunks, {job.source} to {job.target}")
    if not progress.is_submitted:
        say(f"being submitted, or broken off: {progress.sent} chunks or more are sent; `submit` again goes on")
    tally = count_results(bucket, job)
    outstanding = job.chunks - tally.done - tally.failed
    say(f"done {tally.done}, failed {tally.failed}, outstanding {outstanding}")
    for index in tally.first_failed:
        say(f"{where(job, index)}: {reason(bucket.read(job.error_key(index)))}")
    if tally.failed > len(tally.first_failed):
        say(f"... and {tally.failed - len(tally.first_failed)} more")
    if queue:
        _tell_queue(queue, outstanding, say)
    if tally.failed:
        return FAILED
    return NOT_YET if outstanding or not progress.is_submitted else FINISHED


def count_results(bucket: Bucket, job: Job) -> Tally:
    """Count the results in the bucket, holding none but the first failures."""
    tally = Tally()
    error: str | None = None  # the last that was seen; its chunk may have a result nonetheless

    def count_error() -> None:
        if error is not None:
            tally.failed += 1
            if len(tally.first_failed) < _SHOWN:
                tally.first_failed.append(int(error))

    for key in bucket.keys(f"{job.name}/"):
        match = _RESULT.fullmatch(key.removeprefix(f"{job.name}/"))
        if match is None or int(match[1]) >= job.chunks:
            continue
        if match[2]:
            count_error()
            error = match[1]
        else:
            # In order of keys, a chunk's error comes right before its result.
            if error != match[1]:
                count_error()
            error = None
            tally.done += 1
    count_error()
    return tally


def where(job: Job, index: int) -> str:
    """A chunk, and its place in the file."""
    first = sum(islice(job.chunk_sizes(), index)) + 1
    last = first + next(islice(job.chunk_sizes(), index, None)) - 1
    unit = "line" if job.format == "text" else "segment"
    return (
        f"chunk {chunk_id(index)} ({unit} {first})"
        if first == last
        else f"chunk {chunk_id(index)} ({unit}s {first} to {last})"
    )


def reason(content: bytes | None) -> str:
    """The words in an error's object."""
    try:
        return str(json.loads(content or b"")["error"])
    except (ValueError, KeyError, TypeError):
        return "no reason given"


def _tell_queue(queue: Queue, outstanding: int, say: Callable[[str], None]) -> None:
    counts = queue.counts()
    say(f"queue: {counts.waiting} waiting, {counts.in_flight} in flight, {counts.delayed} delayed")
    dead_letters = queue.dead_letters()
    if dead_letters is None:
        return
    dead = dead_letters.counts().total
    say(f"dead letters: {dead}")
    if dead and outstanding and not counts.total:
        say(f"nothing is on its way: `redrive --dlq-url {dead_letters.url}` sends the dead letters again")
