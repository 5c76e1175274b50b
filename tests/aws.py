"""SQS and S3 on this machine: ministack, and what the tests put into it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import boto3

from tests.paths import ROOT

PYTHON = ROOT / ".venv-ministack" / "bin" / "python"

_START_SECONDS = 20.0
_RECEIVES = 3  # before a message becomes a dead letter

_numbers = count()


@dataclass(frozen=True)
class Stack:
    """A queue with its dead-letter queue, and a bucket."""

    queue_url: str
    dlq_url: str
    bucket: str


@dataclass(frozen=True)
class Aws:
    """A running ministack."""

    environment: Mapping[str, str]  # what a program that uses it needs
    sqs: Any
    s3: Any

    def stack(self, visibility_timeout: int = 30, receives: int = _RECEIVES) -> Stack:
        """Make a queue and a bucket that no other test has."""
        name = f"stack-{next(_numbers)}"
        dlq_url = self.sqs.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=dlq_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        attributes = {
            "VisibilityTimeout": str(visibility_timeout),
            "RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": receives}),
        }
        queue_url = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        self.s3.create_bucket(Bucket=name)
        return Stack(queue_url, dlq_url, name)

    def count(self, queue_url: str) -> int:
        """The messages of a queue, those that are being worked on too."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = self.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)["Attributes"]
        return sum(int(attributes[name]) for name in names)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def read(self, bucket: str, key: str) -> Any:
        """An object's JSON."""
        return json.loads(self.s3.get_object(Bucket=bucket, Key=key)["Body"].read())


@contextmanager
def ministack(log: Path) -> Iterator[Aws]:
    """Run ministack on a free port.

    Raises:
        RuntimeError: it is not installed, or does not start.
    """
    if not PYTHON.is_file():
        raise RuntimeError(f"{PYTHON} is missing: `make {PYTHON.parent.parent.name}/stamp` installs ministack.")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [PYTHON, "-m", "ministack"],
            env={**clean, "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port)},
            cwd=log.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"{endpoint}/_ministack/health", process, log)
        environment = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            # Nothing of this machine's own.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        session = boto3.Session("test", "test", region_name="us-east-1")
        sqs, s3 = (session.client(service, endpoint_url=endpoint) for service in ("sqs", "s3"))
        yield Aws(environment, sqs, s3)
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    raise RuntimeError(f"ministack did not start (exit status {process.poll()}):\n{log.read_text()[-2000:]}")
