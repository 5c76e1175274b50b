"""The queue handler and the worker with a real queue and a real bucket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from function.queue_handler import handler
from function.service import results
from tests.aws import Aws, Stack, ministack
from tests.events import endless_texts
from tests.paths import ROOT, held_out

TEXTS = [row["en"] for row in held_out("test_tatoeba")[:40]]


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    with ministack(tmp_path_factory.mktemp("ministack") / "log") as running:
        yield running


@pytest.fixture
def stack(aws: Aws) -> Stack:
    return aws.stack(visibility_timeout=5)


@pytest.fixture
def bucket(aws: Aws, stack: Stack, service: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket that the handler in this process writes into."""
    for name, value in {**aws.environment, "MARIAN_RESULTS_BUCKET": stack.bucket}.items():
        service.setenv(name, value)
    results._s3.cache_clear()
    yield stack.bucket
    results._s3.cache_clear()


def body(id_: str, q: Any, **fields: Any) -> dict[str, Any]:
    return {"job": "job", "id": id_, "q": q, "source": "en", "target": "zh", **fields}


def records(*bodies: Any, receive_count: int = 1) -> dict[str, Any]:
    return {
        "Records": [
            {
                "messageId": str(number),
                "body": body if isinstance(body, str) else json.dumps(body),
                "attributes": {"ApproximateReceiveCount": str(receive_count)},
            }
            for number, body in enumerate(bodies)
        ]
    }


def failed(response: dict[str, Any]) -> list[str]:
    assert set(response) == {"batchItemFailures"}
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


class Context:
    """Lambda's context, with so much time left."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


def test_each_result_is_an_object(aws: Aws, bucket: str) -> None:
    assert failed(handler(records(body("a", TEXTS[0]), body("b", TEXTS[1:4], details=True)), None)) == []

    assert aws.keys(bucket) == ["job/a.json", "job/b.json"]
    one, many = (aws.read(bucket, f"job/{id_}.json") for id_ in "ab")
    assert (one["job"], one["id"]) == ("job", "a")
    assert isinstance(one["translatedText"], str)
    assert len(many["translatedText"]) == len(many["scores"]) == 3


def test_a_result_is_written_once(aws: Aws, bucket: str) -> None:
    handler(records(body("a", TEXTS[0])), None)
    first = aws.s3.get_object(Bucket=bucket, Key="job/a.json")["Body"].read()

    assert failed(handler(records(body("a", "Something else."), body("a", "And again.")), None)) == []

    assert aws.s3.get_object(Bucket=bucket, Key="job/a.json")["Body"].read() == first


def test_two_at_the_same_time_leave_one_result(aws: Aws, bucket: str) -> None:
    events = [records(*(body(str(number), text) for number, text in enumerate(TEXTS[:10]))) for _ in range(2)]

    with ThreadPoolExecutor() as pool:
        responses = list(pool.map(lambda event: handler(event, None), events))

    assert [failed(response) for response in responses] == [[], []]
    assert len(aws.keys(bucket)) == 10


@pytest.mark.usefixtures("bucket")
def test_a_message_delivered_again_is_not_translated_again(service: pytest.MonkeyPatch) -> None:
    handler(records(body("a", TEXTS[0])), None)

    def fail(*_: object) -> None:
        raise AssertionError("translated again")

    service.setattr("function.service.queue.read_request", fail)

    assert failed(handler(records(body("a", TEXTS[0]), receive_count=2), None)) == []


def test_large_inputs_come_from_the_bucket(aws: Aws, bucket: str) -> None:
    lines = ["Good morning.", "", "Thank you.\r", "  "]
    content = "\n".join(lines).encode() + b"\n"
    aws.s3.put_object(Bucket=bucket, Key="inputs/text", Body=content)
    place = {"bucket": bucket, "key": "inputs/text"}
    ranged = {**place, "range": [0, len(lines[0]) - 1]}

    assert failed(handler(records(body("all", None, s3=place), body("part", None, s3=ranged)), None)) == []

    whole, part = (aws.read(bucket, f"job/{id_}.json")["translatedText"] for id_ in ("all", "part"))
    assert len(whole) == 4
    assert whole[1] == ""
    assert whole[3] == "  "
    assert not whole[2].endswith("\r")
    assert part == whole[:1]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (body("bad", "Hello.", target="fr"), "fr is not supported"),
        (body("bad", None, s3={"bucket": "nowhere", "key": "x"}), "s3://nowhere/x cannot be read: NoSuchBucket"),
        (body("bad", None, s3={"bucket": None, "key": "missing"}), "cannot be read"),
        (body("bad", ["Hello.", "one two three " * 4000]), "characters, a request may hold"),
    ],
)
def test_the_reason_of_a_refusal_lies_where_the_result_would(aws: Aws, bucket: str, bad: Any, words: str) -> None:
    assert failed(handler(records(body("good", TEXTS[0]), bad), None)) == ["1"]

    assert aws.keys(bucket) == ["job/bad.error.json", "job/good.json"]
    assert words in aws.read(bucket, "job/bad.error.json")["error"]


def test_what_is_finished_is_written_before_the_time_is_up(aws: Aws, bucket: str, service: pytest.MonkeyPatch) -> None:
    service.setattr("function.service.queue._WINDOW_TEXTS", 8)
    service.setenv("MARIAN_MAX_CHARACTERS", "1000000")
    bodies = [body(f"{number:02}", TEXTS[:8]) for number in range(4)]
    endless = [body(f"slow{number}", endless_texts()) for number in range(2)]

    started = time.monotonic()
    response = handler(records(*bodies, *endless), Context(3.0 + 3.0))
    elapsed = time.monotonic() - started

    assert elapsed < 4.5
    assert failed(response) == ["4", "5"]
    assert aws.keys(bucket) == [f"job/0{number}.json" for number in range(4)], "and no error for those unfinished"


def test_storage_out_of_order_keeps_the_message(
    bucket: str, service: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert bucket
    service.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    service.setenv("AWS_MAX_ATTEMPTS", "1")
    results._s3.cache_clear()

    assert failed(handler(records(body("a", TEXTS[0])), None)) == ["0"]
    assert "was not written" in caplog.text
    assert TEXTS[0] not in caplog.text


# --- the worker --------------------------------------------------------------------------------------------


@pytest.fixture
def worker(aws: Aws, stack: Stack, int8_pack: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker on the stack, ready."""
    environment = {**os.environ, **aws.environment, "MARIAN_PACK": str(int8_pack)}
    process = subprocess.Popen(
        [sys.executable, "-m", "function.queue_worker", "--queue-url", stack.queue_url, "--grace", "10"],
        cwd=ROOT,
        env={**environment, "MARIAN_RESULTS_BUCKET": stack.bucket, "MARIAN_MAX_CHARACTERS": "1000000"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "Ready" in line:
            break
    threading.Thread(target=process.stderr.read, daemon=True).start()
    yield process
    process.kill()
    process.wait()


def until(condition: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


@pytest.mark.usefixtures("worker")
def test_the_worker_does_what_the_handler_does(aws: Aws, stack: Stack) -> None:
    for number in range(23):
        aws.sqs.send_message(QueueUrl=stack.queue_url, MessageBody=json.dumps(body(f"{number:02}", TEXTS[number])))
    aws.sqs.send_message(QueueUrl=stack.queue_url, MessageBody="poison")

    until(lambda: len(aws.keys(stack.bucket)) == 23)
    until(lambda: aws.count(stack.dlq_url) == 1, seconds=40)
    assert aws.count(stack.queue_url) == 0


def test_a_worker_that_is_told_to_stop_finishes_what_it_holds(
    aws: Aws, stack: Stack, worker: subprocess.Popen[str]
) -> None:
    texts = [" ".join(TEXTS[:4])] * 60
    aws.sqs.send_message(QueueUrl=stack.queue_url, MessageBody=json.dumps(body("a", texts)))
    until(lambda: hidden(aws, stack) == 1)

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(timeout=25) == 0
    assert aws.keys(stack.bucket) == ["job/a.json"]
    assert aws.count(stack.queue_url) == 0


def test_a_worker_that_cannot_finish_hands_back(aws: Aws, stack: Stack, int8_pack: Path, tmp_path: Path) -> None:
    long_stack = aws.stack(visibility_timeout=600)
    environment = {**os.environ, **aws.environment, "MARIAN_PACK": str(int8_pack)}
    process = subprocess.Popen(
        [sys.executable, "-m", "function.queue_worker", "--queue-url", long_stack.queue_url, "--grace", "0.5"],
        cwd=ROOT,
        env={**environment, "MARIAN_RESULTS_BUCKET": stack.bucket, "MARIAN_MAX_CHARACTERS": "1000000"},
        stderr=(tmp_path / "log").open("w"),
    )
    endless = body("slow", endless_texts())
    aws.sqs.send_message(QueueUrl=long_stack.queue_url, MessageBody=json.dumps(endless))
    until(lambda: hidden(aws, long_stack) == 1)

    process.send_signal(signal.SIGTERM)

    assert process.wait(timeout=10) == 0
    assert hidden(aws, long_stack) == 0, "it would wait ten minutes for its visibility timeout"
    assert aws.count(long_stack.queue_url) == 1
    assert aws.keys(stack.bucket) == []


def hidden(aws: Aws, stack: Stack) -> int:
    name = "ApproximateNumberOfMessagesNotVisible"
    return int(aws.sqs.get_queue_attributes(QueueUrl=stack.queue_url, AttributeNames=[name])["Attributes"][name])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"MARIAN_RESULTS_BUCKET": ""}, "MARIAN_RESULTS_BUCKET must name the bucket"),
        ({"MARIAN_PACK": "/nowhere"}, "/nowhere is not a model pack"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}, "Could not connect"),
    ],
)
def test_a_worker_that_cannot_start_says_why(
    aws: Aws, stack: Stack, int8_pack: Path, changes: dict[str, str], words: str
) -> None:
    environment = {**os.environ, **aws.environment, "MARIAN_PACK": str(int8_pack), "MARIAN_RESULTS_BUCKET": "b"}
    done = subprocess.run(
        [sys.executable, "-m", "function.queue_worker", "--queue-url", stack.queue_url],
        cwd=ROOT,
        env={**environment, **changes},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
