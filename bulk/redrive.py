"""Dead letters back into the queue."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from tqdm import tqdm

from bulk.aws import AwsError, Bucket, Queue, batches
from bulk.errors import BulkError
from bulk.jobs import NAME, error_key

_HIDDEN = 300  # seconds in which a dead letter that was taken must be dealt with
_POLL = 1.0  # seconds


@dataclass(frozen=True)
class Redriven:
    moved: int
    left: int
    errors_deleted: int


def redrive(queue: Queue, dead_letters: Queue, bucket: Bucket | None, job: str | None) -> Redriven:
    """Send dead letters again. One that was sent and not yet deleted when this was broken off is sent twice: harmless.

    Args:
        bucket: where the errors of these chunks are, which no longer hold; None leaves them.
        job: whose messages to move; None for all.

    Raises:
        BulkError: the service does not move the messages.
    """
    if bucket is None and job is None:
        moved = _let_the_service_move(queue, dead_letters)
        if moved is not None:
            return Redriven(moved, 0, 0)
    return _move(queue, dead_letters, bucket, job)


def _let_the_service_move(queue: Queue, dead_letters: Queue) -> int | None:
    """Have SQS move everything, which it does by itself; None where it does not know how."""
    arn = dead_letters.arn()
    try:
        dead_letters.client.start_message_move_task(SourceArn=arn, DestinationArn=queue.arn())
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in ("InvalidAction", "UnknownOperationException") or "UnsupportedOperation" in code:
            return None
        raise
    with tqdm(total=dead_letters.counts().total, unit="message", desc="moving") as bar:
        while True:
            task = dead_letters.client.list_message_move_tasks(SourceArn=arn, MaxResults=1)["Results"][0]
            moved = int(task.get("ApproximateNumberOfMessagesMoved", 0))
            bar.update(moved - bar.n)
            if task["Status"] == "COMPLETED":
                return moved
            if task["Status"] != "RUNNING":
                reason = task.get("FailureReason", "no reason given")
                raise BulkError(f"SQS moved {moved} messages, then its task was {task['Status']}: {reason}")
            time.sleep(_POLL)


def _move(queue: Queue, dead_letters: Queue, bucket: Bucket | None, job: str | None) -> Redriven:
    moved = 0
    errors_deleted = 0
    left: list[str] = []  # receipt handles
    seen: set[bytes] = set()  # what was moved, and may be back
    try:
        with tqdm(total=dead_letters.counts().total, unit="message", desc="moving") as bar:
            while messages := dead_letters.receive(_HIDDEN):
                going: list[tuple[dict[str, Any], str]] = []
                for message in messages:
                    body = message["Body"]
                    digest = hashlib.sha256(body.encode()).digest()
                    names = _names(body)
                    if digest in seen or (job is not None and (names is None or names[0] != job)):
                        left.append(message["ReceiptHandle"])
                        continue
                    seen.add(digest)
                    going.append((message, body))
                    # First the error, then the message: the function may be quick to write another.
                    if bucket and names and bucket.read(key := error_key(*names)) is not None:
                        bucket.delete(key)
                        errors_deleted += 1
                for batch in batches((message, body) for message, body in going):
                    queue.send([body for _, body in batch])
                    dead_letters.delete([message for message, _ in batch])
                    moved += len(batch)
                bar.update(len(messages))
    finally:
        with suppress(*AwsError):  # they show up by themselves, only later
            dead_letters.show(left)
    return Redriven(moved, len(left), errors_deleted)


def _names(body: str) -> tuple[str, str] | None:
    """The job and the id in a message; None where it has none."""
    try:
        fields = json.loads(body)
        job, id_ = fields["job"], fields["id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if isinstance(job, str) and isinstance(id_, str) and NAME.fullmatch(job) and NAME.fullmatch(id_):
        return job, id_
    return None
