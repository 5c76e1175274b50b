"""Results out of the bucket into a file, in order, so that it can be broken off anywhere and gone on with."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from bulk.aws import Bucket, Queue
from bulk.errors import BulkError
from bulk.jobs import Job, read_job
from bulk.output import Part, Style, open_rows
from bulk.results import Result, results
from bulk.status import FAILED, FINISHED, NOT_YET, where

_BLOCK = 1024 * 1024


def collect(
    bucket: Bucket, name: str, out: Path, style: Style, wait: float | None = None, queue: Queue | None = None
) -> int:
    """Write a job's results to a file; or as many as there are to `out`.part, which another call goes on with.

    Args:
        wait: seconds between looks for what is not there yet; None does not wait.
        queue: to tell when there is nothing to wait for any more; None waits for ever.

    Returns:
        FINISHED, FAILED (a chunk has failed; unless that was to stop it, the file is there) or NOT_YET.

    Raises:
        BulkError: there is no such job, or the input is not the job's, or a result is not what it should be.
    """
    progress = read_job(bucket, name)
    while wait is not None and not progress.is_submitted:
        time.sleep(wait)
        progress = read_job(bucket, name)
    job = progress.job
    if not progress.is_submitted:
        _say(f"The job {name} is being submitted, or that was broken off: collect it when `submit` has ended.")
        return NOT_YET
    _check(job, out, style)
    part = Part(out, job, style)
    if part.state.chunks:
        _say(f"Going on after {part.state.chunks} of {job.chunks} chunks.")
    with closing(part), closing(results(bucket, job, part.state.chunks, wait, queue)) as outcomes:
        stopped = _write(job, part, outcomes, style)
    if stopped is not None:
        status, words = stopped
        _say(f"{words} The {part.state.chunks} of {job.chunks} chunks before it are in {part.path}.")
        return status
    _say(f"{out} has all {job.segments} segments.")
    if part.state.failed:
        left = "blank" if style.on_error == "blank" else "as they were"
        _say(f"Chunks that failed, and whose segments are left {left}: {part.state.failed}. `status` tells why.")
        return FAILED
    return FINISHED


def _write(job: Job, part: Part, outcomes: Iterator[Result | None], style: Style) -> tuple[int, str] | None:
    """Write the results that there are. Returns the status and the reason when that is not all."""
    done = sum(islice(job.chunk_sizes(), part.state.chunks))
    rows = open_rows(job, style, done)
    if not part.state.bytes:
        part.append(rows.start())
    with tqdm(total=job.segments, initial=done, unit="segment", desc="collecting") as bar:
        for size in islice(job.chunk_sizes(), part.state.chunks, None):
            result = next(outcomes)
            if result is None:
                place = where(job, part.state.chunks)
                return NOT_YET, f"There is no result of {place} yet; the same command goes on, --wait waits."
            if result.error is not None and style.on_error == "stop":
                place = where(job, part.state.chunks)
                return FAILED, (
                    f"The translation of {place} has failed: {result.error}\n"
                    "`redrive` has it tried again; --on-error source or blank goes on without it."
                )
            part.append(rows.chunk(size, result), chunks=1, failed=int(result.error is not None))
            bar.update(size)
    part.complete(rows.end())
    return None


def _check(job: Job, out: Path, style: Style) -> None:
    """Refuse what could only go wrong later."""
    if out.is_dir():
        raise BulkError(f"{out} is a folder: --out must name a file.")
    if style.input is None:
        if style.on_error == "source":
            raise BulkError("--on-error source needs --input, the file that was submitted.")
        if job.format == "text" and job.line_ending is None:
            raise BulkError(f"the lines of {job.file} end in different ways: give it as --input, to be followed.")
        return
    if out.exists() and out.samefile(style.input):
        raise BulkError(f"{out} is the input itself: give another --out.")
    digest = hashlib.sha256()
    with (
        style.input.open("rb") as file,
        tqdm(total=style.input.stat().st_size, unit="B", unit_scale=True, desc="checking") as bar,
    ):
        while block := file.read(_BLOCK):
            digest.update(block)
            bar.update(len(block))
    if digest.hexdigest() != job.sha256:
        raise BulkError(f"{style.input} is not the file that was submitted as job {job.name}, or it has changed since.")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
