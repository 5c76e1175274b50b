"""Where the results of bulk jobs go, and where their large inputs come from: a bucket.

boto3 is imported when a bucket is first touched: it costs a third of a second, and HTTP requests never need it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from function.service.errors import RequestError


@dataclass(frozen=True)
class Job:
    """The part of a bulk job that one record carries: its name, this part's id, and the message it came in."""

    message_id: str
    job: str
    id: str


class Results(Protocol):
    """Takes what became of jobs."""

    def has(self, job: Job) -> bool:
        """Whether the job's result is there already."""

    def write(self, job: Job, content: dict[str, Any]) -> None:
        """Keep the result of a job that is finished."""

    def write_error(self, job: Job, message: str) -> None:
        """Keep the reason why a job can never be finished."""


class ResponseResults:
    """Collects results for the handler's own response: without a bucket there is nowhere else."""

    def __init__(self) -> None:
        self.collected: list[dict[str, Any]] = []

    def has(self, _job: Job) -> bool:
        return False

    def write(self, _job: Job, content: dict[str, Any]) -> None:
        self.collected.append(content)

    def write_error(self, _job: Job, _message: str) -> None:
        """The log has it."""


class BucketResults:
    """One object a job, JOB/ID.json, written once: whoever comes second leaves it as it is."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    def has(self, job: Job) -> bool:
        client = _s3()
        try:
            client.head_object(Bucket=self._bucket, Key=f"{job.job}/{job.id}.json")
        except client.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in (403, 404):  # 403: may not list, so not told
                return False
            raise
        return True

    def write(self, job: Job, content: dict[str, Any]) -> None:
        client = _s3()
        try:
            client.put_object(
                Bucket=self._bucket,
                Key=f"{job.job}/{job.id}.json",
                Body=_encode(content),
                ContentType="application/json",
                IfNoneMatch="*",
            )
        except client.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 412:
                raise

    def write_error(self, job: Job, message: str) -> None:
        content = {"job": job.job, "id": job.id, "error": message}
        _s3().put_object(
            Bucket=self._bucket,
            Key=f"{job.job}/{job.id}.error.json",
            Body=_encode(content),
            ContentType="application/json",
        )


def read_texts(bucket: str, key: str, byte_range: tuple[int, int] | None) -> list[str]:
    """The lines of an object, or of a range of its bytes (both ends included), as texts.

    Raises:
        RequestError: the object is not there or may not be read, or holds no UTF-8.
    """
    client = _s3()
    extra = {} if byte_range is None else {"Range": f"bytes={byte_range[0]}-{byte_range[1]}"}
    try:
        content: bytes = client.get_object(Bucket=bucket, Key=key, **extra)["Body"].read()
    except client.exceptions.ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] in (403, 404, 416):
            reason = error.response["Error"]["Code"]
            raise RequestError(400, f"s3://{bucket}/{key} cannot be read: {reason}") from error
        raise
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RequestError(400, f"s3://{bucket}/{key} is not UTF-8 (byte {error.start})") from error
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode("utf-8")


@cache
def _s3() -> Any:
    import boto3  # noqa: PLC0415

    return boto3.client("s3")
