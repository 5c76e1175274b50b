"""The queue and the bucket, and what AWS says, in words.

Credentials, region and endpoint are those of the usual AWS environment and configuration files.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ReadTimeoutError,
)

from bulk.errors import BulkError

Client = Any
_T = TypeVar("_T")

AwsError = (BotoCoreError, ClientError)

CONNECTIONS = 16
MESSAGES_PER_BATCH = 10
BATCH_BYTES = (
    1024 * 1024
)  # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html

_TRIES = 8
_LONGEST_WAIT = 20.0  # seconds

_COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")


def client(service: str) -> Client:
    """Raises: BulkError: the endpoint in the environment is not a URL."""
    # More tries than the SDK's three: a job runs for hours, and a network may be away for a while.
    retries: dict[str, Any] = {"mode": "standard"}
    if "AWS_MAX_ATTEMPTS" not in os.environ:
        retries["total_max_attempts"] = _TRIES
    config = Config(retries=retries, max_pool_connections=CONNECTIONS, connect_timeout=5)
    try:
        return boto3.client(service, config=config)
    except ValueError as error:
        raise BulkError(f"{error}: check AWS_ENDPOINT_URL.") from error


@dataclass(frozen=True)
class Counts:
    """Roughly, as SQS counts."""

    waiting: int
    in_flight: int
    delayed: int

    @property
    def total(self) -> int:
        return self.waiting + self.in_flight + self.delayed


@dataclass(frozen=True)
class Queue:
    client: Client
    url: str

    def send(self, bodies: Sequence[str]) -> None:
        """Send messages, a batch at most; those that the queue does not take at once are sent again.

        Raises:
            BulkError: the queue refuses one, or does not take it for long.
        """
        pending = {str(number): body for number, body in enumerate(bodies)}
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(random.uniform(0.5, 1) * min(_LONGEST_WAIT, 0.2 * 2**attempt))
            entries = [{"Id": id_, "MessageBody": body} for id_, body in pending.items()]
            failed = self.client.send_message_batch(QueueUrl=self.url, Entries=entries).get("Failed", [])
            for failure in failed:
                if failure.get("SenderFault") and "Throttl" not in failure["Code"]:
                    raise BulkError(f"the queue refuses a message: {failure['Code']}: {failure.get('Message', '')}")
            pending = {failure["Id"]: pending[failure["Id"]] for failure in failed}
            if not pending:
                return
        raise BulkError(f"the queue does not take messages ({failed[0]['Code']}), tried {_TRIES} times: try later.")

    def receive(self, hidden: int) -> list[dict[str, Any]]:
        """Some messages, which nobody else gets for `hidden` seconds; none when there are none for a while."""
        response = self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=MESSAGES_PER_BATCH, VisibilityTimeout=hidden, WaitTimeSeconds=1
        )
        return list(response.get("Messages", []))

    def delete(self, messages: Sequence[dict[str, Any]]) -> None:
        """Delete messages that were received, a batch at most."""
        entries = [{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(messages)]
        self.client.delete_message_batch(QueueUrl=self.url, Entries=entries)

    def show(self, handles: Sequence[str]) -> None:
        """Give received messages back at once."""
        for start in range(0, len(handles), MESSAGES_PER_BATCH):
            entries = [
                {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": 0}
                for number, handle in enumerate(handles[start : start + MESSAGES_PER_BATCH])
            ]
            self.client.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)

    def counts(self) -> Counts:
        attributes = self._attributes(*_COUNTS)
        return Counts(*(int(attributes[name]) for name in _COUNTS))

    def arn(self) -> str:
        return self._attributes("QueueArn")["QueueArn"]

    def dead_letters(self) -> Queue | None:
        """The queue that this one's failed messages go to."""
        policy = self._attributes("RedrivePolicy").get("RedrivePolicy")
        if policy is None:
            return None
        arn = str(json.loads(policy)["deadLetterTargetArn"]).split(":")
        url = self.client.get_queue_url(QueueName=arn[5], QueueOwnerAWSAccountId=arn[4])["QueueUrl"]
        return Queue(self.client, url)

    def _attributes(self, *names: str) -> dict[str, str]:
        response = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=list(names))
        return dict(response.get("Attributes", {}))


def batches(messages: Iterable[tuple[_T, str]]) -> Iterator[list[tuple[_T, str]]]:
    """Group message bodies, and whatever belongs to each, into what one call can send."""
    batch: list[tuple[_T, str]] = []
    size = 0
    for item, body in messages:
        bytes_ = len(body.encode())
        if batch and (len(batch) == MESSAGES_PER_BATCH or size + bytes_ > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((item, body))
        size += bytes_
    if batch:
        yield batch


@dataclass(frozen=True)
class Bucket:
    client: Client
    name: str

    def read(self, key: str) -> bytes | None:
        """An object's bytes; None where there is no such object."""
        for last in (False, False, True):
            try:
                content: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
                return content
            except (HTTPClientError, IncompleteReadError):
                if last:  # the SDK tries requests again, but not a body that breaks off
                    raise
            except ClientError as error:
                if _code(error) in ("NoSuchKey", "404"):
                    return None
                raise
        raise AssertionError("the last try returns or raises")

    def write(self, key: str, content: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=content)

    def create(self, key: str, content: bytes) -> bool:
        """Write an object unless there is one; tells whether it was written."""
        try:
            self.client.put_object(Bucket=self.name, Key=key, Body=content, IfNoneMatch="*")
        except ClientError as error:
            if _code(error) in ("PreconditionFailed", "ConditionalRequestConflict", "412", "409"):
                return False
            raise
        return True

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=key)

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys that begin with `prefix`, in order, a page at a time."""
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix):
            for item in page.get("Contents", []):
                yield item["Key"]


def explain(error: Exception) -> str:
    """What an error of the SDK means, and what to do."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return "there are no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
    if isinstance(error, NoRegionError):
        return "there is no AWS region: set AWS_REGION, such as us-east-1."
    if isinstance(error, EndpointConnectionError | ConnectTimeoutError):
        return f"{error}; check the network, AWS_REGION and AWS_ENDPOINT_URL."
    if isinstance(error, ReadTimeoutError | ConnectionClosedError | HTTPClientError):
        return f"the connection to AWS broke: {error}"
    if isinstance(error, ClientError):
        code = _code(error)
        words = error.response.get("Error", {}).get("Message") or "no reason given"
        if "NonExistentQueue" in code or code == "QueueDoesNotExist":
            return "there is no such queue: check --queue-url (and --dlq-url), and AWS_REGION."
        if code == "NoSuchBucket":
            return "there is no such bucket: check --bucket."
        if "AccessDenied" in code or code == "403":
            return f"AWS denies {error.operation_name}: {words}"
        if code in ("ExpiredToken", "ExpiredTokenException", "RequestExpired"):
            return "the AWS credentials have expired: log in again."
        if code in (
            "InvalidClientTokenId",
            "InvalidAccessKeyId",
            "UnrecognizedClientException",
            "SignatureDoesNotMatch",
        ):
            return f"AWS does not know the credentials: {words}"
        return f"AWS answers {error.operation_name} with {code}: {words}"
    return str(error)


def _code(error: ClientError) -> str:
    # Those of SQS come with a prefix, or without, by protocol.
    return str(error.response.get("Error", {}).get("Code", ""))
