"""The queue function as a process on any host: `python -m function.queue_worker --queue-url URL`.

It polls, translates and deletes, as Lambda does for the handler. SIGTERM or Ctrl-C ends it: what it holds is
finished if that takes no longer than the grace, and else handed back to the queue at once.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from types import FrameType
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from function.engine.pack import PackError
from function.service.loading import settings
from function.service.queue import translate_records
from function.service.results import BucketResults
from function.service.settings import SettingsError
from function.service.translation import translator

_LOGGER = logging.getLogger(__name__)

_POLL_SECONDS = 20  # the longest that SQS waits for messages
_MESSAGES = 10  # the most that SQS gives at once
_RETRY_SECONDS = 5
_VISIBILITY_SHARE = 0.8  # of the visibility timeout: after that another worker may have the messages


class Worker:
    """Takes batches of messages from a queue until it is told to stop."""

    def __init__(self, client: Any, queue_url: str, bucket: str, grace_seconds: float) -> None:
        self._client = client
        self._queue_url = queue_url
        self._results = BucketResults(bucket)
        self._grace_seconds = grace_seconds
        self._stop_time: float | None = None
        attributes = client.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["VisibilityTimeout"])
        self._visibility_seconds = int(attributes["Attributes"]["VisibilityTimeout"])

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """Take no more messages; called by a signal."""
        self._stop_time = self._stop_time or time.monotonic()

    def run(self) -> None:
        while self._stop_time is None:
            try:
                self._work()
            except (BotoCoreError, ClientError):
                _LOGGER.exception("the queue does not answer; trying again in %d s", _RETRY_SECONDS)
                time.sleep(_RETRY_SECONDS)

    def _work(self) -> None:
        """Receive a batch, translate it, delete what is done, hand back what is not."""
        response = self._client.receive_message(
            QueueUrl=self._queue_url,
            MaxNumberOfMessages=_MESSAGES,
            WaitTimeSeconds=_POLL_SECONDS,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        deadline = time.monotonic() + self._visibility_seconds * _VISIBILITY_SHARE
        messages = response.get("Messages", [])
        if not messages:
            return
        records = [
            {"messageId": m["MessageId"], "body": m["Body"], "attributes": m.get("Attributes", {})} for m in messages
        ]

        def is_out_of_time() -> bool:
            now = time.monotonic()
            return now > deadline or (self._stop_time is not None and now > self._stop_time + self._grace_seconds)

        failed = set(translate_records(records, self._results, is_out_of_time))
        done = [message for message in messages if message["MessageId"] not in failed]
        if done:
            self._client.delete_message_batch(QueueUrl=self._queue_url, Entries=_entries(done))
        if failed:
            # Not for as long as the visibility timeout: others can have them now, or this worker in a while.
            seconds = 0 if self._stop_time is not None else _RETRY_SECONDS
            back = [message for message in messages if message["MessageId"] in failed]
            entries = [{**entry, "VisibilityTimeout": seconds} for entry in _entries(back)]
            self._client.change_message_visibility_batch(QueueUrl=self._queue_url, Entries=entries)
        _LOGGER.info("%d messages done, %d to try again", len(done), len(failed))


def _entries(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"Id": str(number), "ReceiptHandle": m["ReceiptHandle"]} for number, m in enumerate(messages)]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m function.queue_worker",
        description="Translate the messages of a queue until SIGTERM. Pack, bucket and limits are those of MARIAN_* "
        "in the environment; credentials, region and endpoint those of AWS_*.",
    )
    parser.add_argument("--queue-url", required=True, help="URL of the SQS queue")
    parser.add_argument(
        "--grace", type=float, default=20, help="seconds to finish after SIGTERM (default: %(default)s)"
    )
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        bucket = settings().results_bucket
        if bucket is None:
            print("MARIAN_RESULTS_BUCKET must name the bucket for the results.", file=sys.stderr)
            return 2
        translator().translate(["a"])
        worker = Worker(boto3.client("sqs"), arguments.queue_url, bucket, arguments.grace)
    except (PackError, SettingsError, BotoCoreError, ClientError) as error:
        print(f"The worker cannot start: {error}", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, worker.stop)
    _LOGGER.info("Ready for %s", arguments.queue_url)
    worker.run()
    _LOGGER.info("Stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
