"""The results of chunks, fetched ahead and given in order."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from bulk.aws import CONNECTIONS, Bucket, Queue
from bulk.errors import BulkError
from bulk.jobs import Job
from bulk.status import reason

_AHEAD = 2 * CONNECTIONS  # chunks
_IDLE_SECONDS = 60.0  # SQS counts only roughly, and late


@dataclass(frozen=True)
class Result:
    """What became of a chunk: translations, with scores if the job has them; or the reason that there are none."""

    texts: list[str]
    scores: list[Any] | None = None
    error: str | None = None


def results(bucket: Bucket, job: Job, first: int, wait: float | None, queue: Queue | None) -> Generator[Result | None]:
    """Give the results of chunk number `first` and on; None, and nothing after it, for one that is not there.

    Args:
        wait: seconds between looks for a result that is not there yet; None does not wait.
        queue: where a chunk that has no result must be; once the queue has been empty for a minute there is
            nothing to wait for. None waits for ever.

    Raises:
        BulkError: a result is not what it should be.
    """
    chunks = islice(enumerate(job.chunk_sizes()), first, None)
    ahead: deque[tuple[int, int, Future[Result | None]]] = deque()
    pool = ThreadPoolExecutor(CONNECTIONS)

    def fetch(index: int, size: int) -> Future[Result | None]:
        return pool.submit(_fetch, bucket, job, index, size)

    try:
        while True:
            ahead.extend((index, size, fetch(index, size)) for index, size in islice(chunks, _AHEAD - len(ahead)))
            if not ahead:
                return
            index, size, future = ahead.popleft()
            result = future.result()
            if result is None and wait is not None:
                result = _await(bucket, job, index, size, wait, queue)
                # Those after it may have been looked for too early too.
                late = [(index, size) for index, size, future in ahead if future.cancel() or not future.result()]
                again = {index: fetch(index, size) for index, size in late}
                ahead = deque((index, size, again.get(index, future)) for index, size, future in ahead)
            yield result
            if result is None:
                return
    finally:
        pool.shutdown(cancel_futures=True)


def _await(bucket: Bucket, job: Job, index: int, size: int, wait: float, queue: Queue | None) -> Result | None:
    """Look for a result until it is there; None when there is nothing left that could bring it."""
    busy = time.monotonic()
    while True:
        time.sleep(wait)
        result = _fetch(bucket, job, index, size)
        if result is not None:
            return result
        if queue is None or queue.counts().total:
            busy = time.monotonic()
        elif time.monotonic() - busy > _IDLE_SECONDS:
            return None


def _fetch(bucket: Bucket, job: Job, index: int, size: int) -> Result | None:
    content = bucket.read(job.key(index))
    if content is not None:
        return _parse(content, f"s3://{bucket.name}/{job.key(index)}", size)
    error = bucket.read(job.error_key(index))
    return Result([], error=reason(error)) if error is not None else None


def _parse(content: bytes, place: str, size: int) -> Result:
    try:
        fields = json.loads(content)
        texts, scores = fields["translatedText"], fields.get("scores")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BulkError(f"{place} is not a result: it was written by something else.") from error
    texts = texts if isinstance(texts, list) else [texts]
    scores = scores if isinstance(scores, list) or scores is None else [scores]
    if len(texts) != size or not all(isinstance(text, str) for text in texts):
        raise BulkError(f"{place} has {len(texts)} texts, and {size} were sent: it is the result of something else.")
    if scores is not None and len(scores) != size:
        raise BulkError(f"{place} has {len(scores)} scores for {size} texts.")
    return Result(texts, scores)
