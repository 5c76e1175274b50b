"""The bulk client, against SQS and S3 of ministack, and a stand-in for the function that reverses texts."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from bulk import aws as bulk_aws
from bulk import results as bulk_results
from bulk.__main__ import main
from bulk.aws import Bucket, Queue
from bulk.errors import BulkError
from bulk.jobs import read_job
from bulk.redrive import redrive
from tests.aws import Aws, Stack, ministack
from tests.paths import ROOT

POISON = "cannot be translated"


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    with ministack(tmp_path_factory.mktemp("ministack") / "log") as running:
        yield running


@pytest.fixture(autouse=True)
def _environment(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    # The command raises this limit for its process, which here is that of all tests.
    limit = csv.field_size_limit()
    yield
    csv.field_size_limit(limit)


@pytest.fixture
def stack(aws: Aws) -> Stack:
    return aws.stack()


@dataclass
class Function:
    """Stands in for the function: takes messages, writes results once; a poisonous text fails its chunk."""

    aws: Aws
    stack: Stack
    heals: bool = False
    ids: list[str] = field(default_factory=list)  # of the messages that came

    def work(self, messages: int | None = None) -> None:
        """Take messages until there are none, or so many."""
        taken = 0
        while messages is None or taken < messages:
            most = 10 if messages is None else min(10, messages - taken)
            batch = self.aws.sqs.receive_message(QueueUrl=self.stack.queue_url, MaxNumberOfMessages=most)
            if "Messages" not in batch:
                return
            done = [message for message in batch["Messages"] if self._translate(json.loads(message["Body"]))]
            failed = [message for message in batch["Messages"] if message not in done]
            if done:
                entries = [{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(done)]
                self.aws.sqs.delete_message_batch(QueueUrl=self.stack.queue_url, Entries=entries)
            for message in failed:
                self.aws.sqs.change_message_visibility(
                    QueueUrl=self.stack.queue_url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
                )
            taken += len(batch["Messages"])

    def _translate(self, fields: dict[str, Any]) -> bool:
        job, id_ = fields["job"], fields["id"]
        self.ids.append(id_)
        texts = fields["q"] if "q" in fields else self._stored(fields["s3"])
        key = f"{job}/{id_}"
        if POISON in "".join(texts) and not self.heals:
            self._write(f"{key}.error.json", {"job": job, "id": id_, "error": f"q[0]: {POISON}"})
            return False
        result = {"job": job, "id": id_, "translatedText": [text[::-1] for text in texts]}
        if fields.get("details"):
            result["scores"] = [-0.5 for _ in texts]
        self._write(f"{key}.json", result)
        return True

    def _stored(self, place: dict[str, str]) -> list[str]:
        content = self.aws.s3.get_object(Bucket=place["bucket"], Key=place["key"])["Body"].read().decode()
        return [line.removesuffix("\r") for line in content.removesuffix("\n").split("\n")]

    def _write(self, key: str, content: dict[str, Any]) -> None:
        try:
            self.aws.s3.put_object(Bucket=self.stack.bucket, Key=key, Body=json.dumps(content), IfNoneMatch="*")
        except ClientError as error:
            if error.response["Error"]["Code"] != "PreconditionFailed":
                raise


@pytest.fixture
def function(aws: Aws, stack: Stack) -> Function:
    return Function(aws, stack)


@dataclass
class Client:
    """The command line on one stack."""

    stack: Stack
    capsys: pytest.CaptureFixture[str]

    def submit(self, file: Path, *options: str) -> str:
        """Submit a file; gives the job's name."""
        assert self.run("submit", str(file), *options) == 0
        return self.out.strip()

    def run(self, step: str, *options: str) -> int:
        self.capsys.readouterr()
        status = main([step, *self.arguments(step), *options])
        self.out, self.err = self.capsys.readouterr()
        assert "Traceback" not in self.err
        return status

    def arguments(self, step: str) -> list[str]:
        arguments = []
        if step in ("submit", "status", "redrive"):
            arguments += ["--queue-url", self.stack.queue_url]
        if step != "redrive":
            arguments += ["--bucket", self.stack.bucket]
        else:
            arguments += ["--dlq-url", self.stack.dlq_url]
        return arguments


@pytest.fixture
def client(stack: Stack, capsys: pytest.CaptureFixture[str]) -> Client:
    return Client(stack, capsys)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def numbered(path: Path, count: int) -> Path:
    """A file of that many lines, each another."""
    return write(path, "".join(f"line {number:06}\n" for number in range(count)).encode())


def reversed_lines(file: Path) -> bytes:
    return b"".join(line[::-1] + b"\n" for line in file.read_bytes().splitlines())


@pytest.mark.parametrize("with_input", [True, False])
@pytest.mark.parametrize(
    ("content", "translated"),
    [
        (b"abc\n\n  \ndef\n", b"cba\n\n  \nfed\n"),
        (b"abc\r\n\r\ndef", b"cba\r\n\r\nfed"),
        (b"\xef\xbb\xbfabc\nd\xc3\xa9f \xe2\x80\xa8 g\n", "\ufeffcba\ng \u2028 féd\n".encode()),
        (b"one line", b"enil eno"),
        (b"\x00\x01\x7f\xef\xbf\xbf\n", b"\xef\xbf\xbf\x7f\x01\x00\n"),
        (b"", b""),
    ],
)
def test_text(
    client: Client, function: Function, tmp_path: Path, content: bytes, translated: bytes, with_input: bool
) -> None:
    file = write(tmp_path / "a text.txt", content)
    out = tmp_path / "out.txt"

    job = client.submit(file, "--chunk-segments", "2")
    function.work()

    assert re.fullmatch(r"a-text-zh-[0-9a-f]{12}", job)
    assert client.run("status", "--job", job) == 0
    options = ["--input", str(file)] if with_input else []
    assert client.run("collect", "--job", job, "--out", str(out), *options) == 0
    assert out.read_bytes() == translated
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a text.txt", "out.txt"]


def test_text_whose_lines_end_in_different_ways_needs_the_input(
    client: Client, function: Function, tmp_path: Path
) -> None:
    file = write(tmp_path / "mixed.txt", b"abc\r\ndef\nghi")
    out = tmp_path / "out.txt"
    job = client.submit(file)
    function.work()

    assert client.run("collect", "--job", job, "--out", str(out)) == 2
    assert "give it as --input" in client.err
    assert client.run("collect", "--job", job, "--out", str(out), "--input", str(file)) == 0
    assert out.read_bytes() == b"cba\r\nfed\nihg"


CSV = b'id,text,note\r\n1,"a ""b"", c",x\r\n\r\n2,"two\nlines",\r\n3,,"z"\r\n'
TSV = b'id\ttext\n1\ta "b, c\n\n2\t\n'
JSONL = b'{"id": 1.50, "text": "a\\u00e9b"}\n\n  {"text":"",  "n":{"text":1} } \r\n{"text": "\\ud83d\\ude00 \\n"}'


@pytest.mark.parametrize(
    ("name", "content", "added", "alone"),
    [
        (
            "a.csv",
            CSV,
            b'id,text,note,translation\r\n1,"a ""b"", c",x,"c ,""b"" a"\r\n\r\n'
            b'2,"two\nlines",,"senil\nowt"\r\n3,,"z",\r\n',
            b'translation\n"c ,""b"" a"\n"senil\nowt"\n""\n',
        ),
        (
            "a.tsv",
            TSV,
            b'id\ttext\ttranslation\n1\ta "b, c\tc ,b" a\n\n2\t\t\n',
            b'translation\nc ,b" a\n\n',
        ),
        (
            "a.jsonl",
            JSONL,
            '{"id": 1.50, "text": "a\\u00e9b", "translation": "béa"}\n\n'
            '  {"text":"",  "n":{"text":1}, "translation": ""} \r\n'
            '{"text": "\\ud83d\\ude00 \\n", "translation": "\\n 😀"}'.encode(),
            '{"translation": "béa"}\n{"translation": ""}\n{"translation": "\\n 😀"}\n'.encode(),
        ),
    ],
)
def test_rows_get_a_field_and_stay_as_they_were(
    client: Client, function: Function, tmp_path: Path, name: str, content: bytes, added: bytes, alone: bytes
) -> None:
    file = write(tmp_path / name, content)
    out = tmp_path / "out"
    job = client.submit(file, "--column", "text", "--chunk-segments", "2")
    function.work()

    assert client.run("collect", "--job", job, "--out", str(out), "--input", str(file)) == 0
    assert out.read_bytes() == added
    assert client.run("collect", "--job", job, "--out", str(out)) == 0
    assert out.read_bytes() == alone


def test_scores_and_a_name_of_ones_own(client: Client, function: Function, tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", b"translation,text\nx,abc\n")
    out = tmp_path / "out.csv"
    job = client.submit(file, "--column", "text", "--details", "--source", "de", "--target", "zh-Hans")
    function.work()
    options = ["--job", job, "--out", str(out), "--input", str(file)]

    assert client.run("collect", *options) == 2
    assert "line 1: there is a 'translation' already" in client.err
    assert "--into" in client.err
    assert client.run("collect", *options, "--into", "zh") == 0
    assert out.read_bytes() == b"translation,text,zh,zh_score\nx,abc,cba,-0.5\n"


def test_messages_are_what_the_function_reads(aws: Aws, client: Client, tmp_path: Path) -> None:
    texts = ["short", "é" * 30_000, "b" * 1_500, "c" * 1_100_000, "last"]
    file = write(tmp_path / "long.txt", "\n".join(texts).encode())

    job = client.submit(file, "--job", "a.b-c_1", "--details")

    bodies: list[dict[str, Any]] = []
    while len(bodies) < 5:
        received = aws.sqs.receive_message(QueueUrl=client.stack.queue_url, MaxNumberOfMessages=10)
        bodies += [json.loads(message["Body"]) for message in received["Messages"]]
    bodies.sort(key=lambda body: str(body["id"]))
    common = {"job": job, "source": "en", "target": "zh", "details": True}
    place = {"bucket": client.stack.bucket, "key": f"inputs/{job}/00000003.txt"}
    assert bodies == [
        {**common, "id": f"{number:08}", **({"s3": place} if number == 3 else {"q": [text]})}
        for number, text in enumerate(texts)
    ]
    stored = aws.s3.get_object(Bucket=client.stack.bucket, Key=place["key"])["Body"].read()
    assert stored.decode() == texts[3]


def test_a_text_that_is_too_long_for_a_message_and_many_that_are_too_long_for_a_batch(
    client: Client, function: Function, tmp_path: Path
) -> None:
    lines = [character * 400_000 for character in "abcdefgh"] + ["x" * 1_200_000 + "y"]
    file = write(tmp_path / "long.txt", "\n".join(lines).encode())
    out = tmp_path / "out.txt"
    job = client.submit(file)
    function.work()

    assert client.run("collect", "--job", job, "--out", str(out)) == 0
    assert out.read_text().split("\n") == [line[::-1] for line in lines]


def test_a_manifest_tells_what_was_submitted(aws: Aws, client: Client, tmp_path: Path) -> None:
    file = numbered(tmp_path / "n.txt", 130)

    job = client.submit(file)

    manifest = aws.read(client.stack.bucket, f"{job}/job.json")
    assert manifest["name"] == job
    assert (manifest["file"], manifest["size"], manifest["lines"]) == ("n.txt", file.stat().st_size, 130)
    assert (manifest["segments"], manifest["chunks"], manifest["sizes"]) == (130, 3, [[64, 2], [2, 1]])
    assert aws.keys(client.stack.bucket) == [f"{job}/job.json"]


@pytest.mark.parametrize(
    ("name", "content", "column", "words"),
    [
        ("a.txt", b"good\n\xff\xfe\n", None, "line 2: it is not UTF-8"),
        ("a.txt", b"good\n", "text", "--column is for .jsonl"),
        ("a.csv", b"", "text", "line 1: the first line must name the columns"),
        ("a.csv", b"text\n", None, "say with --column which column"),
        ("a.csv", b"id,text\n1,a\n2\n", "text", "line 3: the row has 1 fields and the header 2"),
        ("a.csv", b"id,text\n1,a\n", "txt", "there is no column 'txt'; the columns are 'id', 'text'"),
        ("a.csv", b"text,text\n1,a\n", "text", "more than one column 'text'"),
        ("a.csv", b'id,text\n1,"a\nb\n2,c\n', "text", "line 2: the row cannot be read"),
        ("a.csv", b"id,text\n1,a\n2,\xff\n", "text", "line 3: it is not UTF-8"),
        ("a.tsv", b"id\ttext\n1\ta\tb\n", "text", "line 2: the row has 3 fields and the header 2"),
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', "text", "line 2: it is not valid JSON"),
        ("a.jsonl", b'{"text": "a"}\n["a"]\n', "text", "line 2: it must be a JSON object"),
        ("a.jsonl", b'\n{"txt": "a"}\n', "text", "line 2: there is no key 'text'; the keys are 'txt'"),
        ("a.jsonl", b'{"text": null}\n', "text", "line 1: 'text' must be a string, it is null"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', "text", "line 1: 'text' holds half of a character"),
        ("a.jsonl", b"[" * 100_000, "text", "line 1: it is not valid JSON"),
        ("a.jsonl", b'{"text": "' + b"a\\n" * 600_000 + b'"}', "text", "line 1: a text of 1200000 characters"),
    ],
)
def test_a_file_that_cannot_be_sent_is_refused_before_anything_is_sent(
    aws: Aws, client: Client, tmp_path: Path, name: str, content: bytes, column: str | None, words: str
) -> None:
    file = write(tmp_path / name, content)

    status = client.run("submit", str(file), *(["--column", column] if column else []))

    assert status == 2
    assert words in client.err
    assert aws.count(client.stack.queue_url) == 0
    assert aws.keys(client.stack.bucket) == []


@pytest.mark.parametrize(("stop", "status"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_submission_that_is_broken_off_goes_on(
    aws: Aws, client: Client, function: Function, tmp_path: Path, stop: signal.Signals, status: int
) -> None:
    file = numbered(tmp_path / "n.txt", 3_000)
    arguments = ["submit", *client.arguments("submit"), str(file), "--job", "n", "--chunk-segments", "5"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bulk", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: "n/progress.json" in aws.keys(client.stack.bucket))
    wait_until(lambda: aws.read(client.stack.bucket, "n/progress.json")["sent"] >= 100)
    process.send_signal(stop)
    _, err = process.communicate(timeout=10)
    sent = aws.count(client.stack.queue_url)

    assert process.returncode == status, err
    assert stop == signal.SIGKILL or "interrupted; the same command goes on where this one was" in err
    assert 100 <= sent < 600
    assert client.run("status", "--job", "n") == 3
    assert "`submit` again goes on" in client.out
    assert client.run("collect", "--job", "n", "--out", str(tmp_path / "out")) == 3
    assert main([*arguments]) == 0
    again = aws.count(client.stack.queue_url) - 600
    assert 0 <= again <= (110 if stop == signal.SIGKILL else 10)
    function.work()
    assert len(function.ids) == 600 + again
    assert len(set(function.ids)) == 600
    assert client.run("collect", "--job", "n", "--out", str(tmp_path / "out")) == 0
    assert (tmp_path / "out").read_bytes() == reversed_lines(file)


def test_what_has_been_submitted_is_not_sent_again(aws: Aws, client: Client, tmp_path: Path) -> None:
    file = numbered(tmp_path / "n.txt", 100)
    job = client.submit(file)

    assert client.submit(file) == job
    assert "nothing is sent" in client.err
    assert aws.count(client.stack.queue_url) == 2


def test_a_name_stands_for_one_job(aws: Aws, client: Client, tmp_path: Path) -> None:
    file = numbered(tmp_path / "n.txt", 100)
    client.submit(file, "--job", "n")

    assert client.run("submit", str(file), "--job", "n", "--target", "ja") == 2
    assert "was begun with --target zh, not with --target ja" in client.err
    assert client.run("submit", str(file), "--job", "n", "--details") == 2
    assert "was begun with no --details" in client.err
    numbered(file, 101)
    assert client.run("submit", str(file), "--job", "n") == 2
    assert "was begun with another n.txt" in client.err
    assert "give --job a new name" in client.err
    assert aws.count(client.stack.queue_url) == 2


def test_collecting_goes_on_where_it_was(aws: Aws, client: Client, function: Function, tmp_path: Path) -> None:
    file = numbered(tmp_path / "n.txt", 1_000)
    out, part = tmp_path / "out.txt", tmp_path / "out.txt.part"
    job = client.submit(file, "--chunk-segments", "5")
    function.work(messages=120)
    done = len(aws.keys(client.stack.bucket)) - 1
    collect = ["collect", "--job", job, "--out", str(out)]

    assert client.run("status", "--job", job) == 3
    assert f"done {done}, failed 0, outstanding {200 - done}" in client.out
    assert client.run(*collect) == 3
    assert "There is no result of chunk 00000120 (lines 601 to 605) yet" in client.err
    assert not out.exists()
    assert part.read_bytes() == b"".join(reversed_lines(file).splitlines(keepends=True)[:600])

    # What was collected is not fetched again, and what was written after the last record of it is not kept.
    aws.s3.delete_object(Bucket=client.stack.bucket, Key=f"{job}/00000000.json")
    with part.open("ab") as file_of_part:
        file_of_part.write(b"half a chu")
    function.work()
    assert client.run(*collect) == 0
    assert out.read_bytes() == reversed_lines(file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.txt", "out.txt"]


def test_a_part_of_another_kind_is_not_gone_on_with(client: Client, function: Function, tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", b"text\n" + b"abc\n" * 10)
    out = tmp_path / "out.csv"
    job = client.submit(file, "--column", "text", "--chunk-segments", "2")
    function.work(messages=2)

    assert client.run("collect", "--job", job, "--out", str(out)) == 3
    function.work()
    assert client.run("collect", "--job", job, "--out", str(out), "--input", str(file)) == 0
    assert out.read_bytes() == b"text,translation\n" + b"abc,cba\n" * 10


def test_collecting_can_wait(client: Client, function: Function, tmp_path: Path) -> None:
    file = numbered(tmp_path / "n.txt", 400)
    out = tmp_path / "out.txt"
    job = client.submit(file, "--chunk-segments", "5")

    def work_late() -> None:
        for _ in range(4):
            time.sleep(0.2)
            function.work(messages=20)

    worker = threading.Thread(target=work_late)
    worker.start()
    status = client.run(
        "collect", "--job", job, "--out", str(out), "--wait", "0.1", "--queue-url", client.stack.queue_url
    )
    worker.join()

    assert status == 0
    assert out.read_bytes() == reversed_lines(file)
    assert "400/400" in client.err, "no progress is shown"


def test_waiting_ends_when_the_queue_is_empty(
    aws: Aws, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_results, "_IDLE_SECONDS", 0.3)
    job = client.submit(numbered(tmp_path / "n.txt", 10))
    aws.sqs.purge_queue(QueueUrl=client.stack.queue_url)
    options = ["--wait", "0.1", "--queue-url", client.stack.queue_url]

    assert client.run("collect", "--job", job, "--out", str(tmp_path / "out"), *options) == 3
    assert "There is no result of chunk 00000000" in client.err


@pytest.fixture
def failing(client: Client, function: Function, tmp_path: Path) -> tuple[str, Path]:
    """A job with one chunk that has failed, and its file."""
    lines = [f"line {number}" for number in range(10)]
    lines[5] = POISON
    file = write(tmp_path / "f.txt", "\n".join(lines).encode())
    job = client.submit(file, "--chunk-segments", "2")
    for _ in range(4):
        function.work()
    return job, file


def test_a_chunk_that_failed_is_reported(aws: Aws, client: Client, failing: tuple[str, Path], tmp_path: Path) -> None:
    job, file = failing
    out = tmp_path / "out.txt"
    collect = ["collect", "--job", job, "--out", str(out)]

    assert client.run("status", "--job", job) == 1
    assert "done 4, failed 1, outstanding 0" in client.out
    assert f"chunk 00000002 (lines 5 to 6): q[0]: {POISON}" in client.out
    assert "queue: 0 waiting, 0 in flight, 0 delayed" in client.out
    assert "dead letters: 1" in client.out
    assert client.run(*collect) == 1
    assert f"chunk 00000002 (lines 5 to 6) has failed: q[0]: {POISON}" in client.err
    assert not out.exists()
    assert client.run(*collect, "--on-error", "source") == 2
    assert "--on-error source needs --input" in client.err
    assert client.run(*collect, "--on-error", "source", "--input", str(file)) == 1
    assert out.read_text().split("\n")[3:7] == ["3 enil", "line 4", POISON, "6 enil"]
    assert client.run(*collect, "--on-error", "blank") == 1
    assert out.read_text().split("\n")[3:7] == ["3 enil", "", "", "6 enil"]
    assert len(aws.keys(client.stack.bucket, f"{job}/00000002")) == 1


@pytest.mark.parametrize("options", [["--bucket"], ["--bucket", "--job"], []])
def test_redriving(
    aws: Aws, client: Client, function: Function, failing: tuple[str, Path], tmp_path: Path, options: list[str]
) -> None:
    job, file = failing
    values = {"--bucket": client.stack.bucket, "--job": job}
    function.heals = True

    assert client.run("redrive", *(word for option in options for word in (option, values[option]))) == 0

    assert client.out == f"moved 1, left 0, errors deleted {1 if options else 0}\n"
    assert (aws.count(client.stack.dlq_url), aws.count(client.stack.queue_url)) == (0, 1)
    assert client.run("status", "--job", job) == (3 if options else 1)
    function.work()
    assert client.run("status", "--job", job) == 0
    out = tmp_path / "out.txt"
    assert client.run("collect", "--job", job, "--out", str(out)) == 0
    assert out.read_bytes() + b"\n" == reversed_lines(file)


def test_redriving_one_job_leaves_the_others(
    aws: Aws, client: Client, function: Function, failing: tuple[str, Path]
) -> None:
    _, file = failing
    client.submit(file, "--job", "other")
    aws.sqs.send_message(QueueUrl=client.stack.dlq_url, MessageBody="not of any job")
    for _ in range(4):
        function.work()

    assert client.run("redrive", "--job", "other") == 0

    assert client.out == "moved 1, left 2, errors deleted 0\n"
    received = aws.sqs.receive_message(QueueUrl=client.stack.dlq_url, MaxNumberOfMessages=10)
    assert len(received["Messages"]) == 2, "those that were left can be taken at once"


def test_the_service_moves_messages_where_it_can(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bulk.redrive._POLL", 0.01)
    sqs = boto3.client("sqs")
    answers: dict[str, list[dict[str, Any]]] = {
        "StartMessageMoveTask": [{"TaskHandle": "task"}],
        "ListMessageMoveTasks": [
            {"Results": [{"Status": status, "ApproximateNumberOfMessagesMoved": moved}]}
            for status, moved in (("RUNNING", 3), ("COMPLETED", 7))
        ],
    }
    for operation, values in answers.items():
        answer_instead(sqs, operation, values)

    done = redrive(Queue(sqs, stack.queue_url), Queue(sqs, stack.dlq_url), None, None)

    assert (done.moved, answers["ListMessageMoveTasks"]) == (7, [])


def test_messages_that_the_queue_does_not_take_at_once_are_sent_again(
    aws: Aws, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_aws, "_LONGEST_WAIT", 0.01)
    sqs = boto3.client("sqs")
    failure = {"SenderFault": False, "Code": "ServiceUnavailable"}
    answers = [
        {"Successful": [], "Failed": [{"Id": str(number), **failure} for number in range(3)]},
        {"Successful": [], "Failed": [{"Id": "1", **failure}]},
    ]
    answer_instead(sqs, "SendMessageBatch", answers)

    Queue(sqs, stack.queue_url).send(["a", "b", "c"])

    assert answers == []
    received = aws.sqs.receive_message(QueueUrl=stack.queue_url, MaxNumberOfMessages=10)
    assert [message["Body"] for message in received["Messages"]] == ["b"]


def test_a_message_that_the_queue_refuses_is_an_error(stack: Stack) -> None:
    with pytest.raises(BulkError, match="InvalidMessageContents"):
        Queue(boto3.client("sqs"), stack.queue_url).send(["good", "\x01"])


def test_a_file_is_never_held_in_memory(client: Client, function: Function, tmp_path: Path) -> None:
    file = write(tmp_path / "n.txt", b"".join(b"%06d " % number + b"x" * 300 + b"\n" for number in range(20_000)))
    out = tmp_path / "out.txt"
    client.run("status", "--job", "none")  # the SDK's own descriptions of services are loaded once

    with peak_below(file.stat().st_size / 2):
        job = client.submit(file)
    function.work()
    with peak_below(file.stat().st_size / 2):
        assert client.run("collect", "--job", job, "--out", str(out)) == 0

    assert out.read_bytes() == reversed_lines(file)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "Could not connect to the endpoint URL"),
        ({"AWS_ENDPOINT_URL": "nonsense"}, "check AWS_ENDPOINT_URL"),
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "there are no AWS credentials"),
        ({"AWS_REGION": None, "AWS_DEFAULT_REGION": None}, "there is no AWS region"),
        ({"AWS_PROFILE": "nobody"}, "nobody"),
    ],
)
def test_an_environment_that_does_not_do(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str | None], words: str
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # which has read the environment
    for name, value in environment.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    file = numbered(tmp_path / "n.txt", 3)

    assert client.run("submit", str(file)) == 2
    assert words in client.err
    assert "bulk submit: " in client.err


def test_a_queue_a_bucket_or_a_job_that_is_not_there(client: Client, stack: Stack, tmp_path: Path) -> None:
    file = numbered(tmp_path / "n.txt", 3)

    client.stack = Stack(f"{stack.queue_url}-gone", stack.dlq_url, stack.bucket)
    assert client.run("submit", str(file)) == 2
    assert "there is no such queue: check --queue-url" in client.err
    client.stack = Stack(stack.queue_url, stack.dlq_url, "gone-for-good")
    for step in (["submit", str(file)], ["status", "--job", "n"], ["collect", "--job", "n", "--out", str(file)]):
        assert client.run(*step) == 2
        assert "there is no such bucket: check --bucket" in client.err
    client.stack = stack
    assert client.run("status", "--job", "none") == 2
    assert "has no job none" in client.err


def test_a_result_of_something_else_is_refused(aws: Aws, client: Client, tmp_path: Path) -> None:
    file = numbered(tmp_path / "n.txt", 3)
    out = tmp_path / "out"
    job = client.submit(file)
    key = {"Bucket": client.stack.bucket, "Key": f"{job}/00000000.json"}

    for content, words in ((b'{"translatedText": ["a"]}', "has 1 texts, and 3 were sent"), (b"[]", "is not a result")):
        aws.s3.put_object(**key, Body=content)
        assert client.run("collect", "--job", job, "--out", str(out)) == 2
        assert words in client.err
    other = numbered(tmp_path / "m.txt", 4)
    assert client.run("collect", "--job", job, "--out", str(out), "--input", str(other)) == 2
    assert "m.txt is not the file that was submitted" in client.err
    assert client.run("collect", "--job", job, "--out", str(file), "--input", str(file)) == 2
    assert "is the input itself" in client.err
    aws.s3.put_object(Bucket=client.stack.bucket, Key=f"{job}/job.json", Body=b"{}")
    assert client.run("status", "--job", job) == 2
    assert "is not the manifest of a job" in client.err


def test_another_machine_can_go_on(aws: Aws, client: Client, tmp_path: Path) -> None:
    """All that is known of a job is in its bucket."""
    file = numbered(tmp_path / "n.txt", 100)
    job = client.submit(file)
    (tmp_path / "elsewhere").mkdir()
    moved = file.rename(tmp_path / "elsewhere" / "m.txt")

    assert client.submit(moved, "--job", job) == job
    progress = read_job(Bucket(aws.s3, client.stack.bucket), job)
    assert (progress.is_submitted, progress.sent, progress.job.file) == (True, 2, "n.txt")


@pytest.mark.parametrize("step", ["submit", "status", "collect", "redrive"])
def test_help(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([step, "--help"])

    assert stop.value.code == 0
    assert "Exit status" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--job", "../up"], "is no name of a job"),
        (["--chunk-segments", "0"], "is not a whole number from 1"),
        (["--chunk-bytes", "9999999"], "is not a whole number from 1"),
    ],
)
def test_wrong_options(client: Client, capsys: pytest.CaptureFixture[str], option: list[str], words: str) -> None:
    with pytest.raises(SystemExit) as stop:
        client.run("submit", "file", *option)

    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.005)


@contextmanager
def peak_below(most: float) -> Iterator[None]:
    """See that Python never holds more than so many bytes more than before."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def answer_instead(client: Any, operation: str, answers: list[dict[str, Any]]) -> None:
    """Have a client read these answers, one for each call, as long as there are any."""

    def answer(request: Any, **_: Any) -> AWSResponse | None:
        if not answers:
            return None
        raw = io.BytesIO(json.dumps(answers.pop(0)).encode())
        response = AWSResponse(request.url, 200, {"Content-Type": "application/x-amz-json-1.0"}, raw)
        response.raw.stream = lambda: iter([raw.read()])
        return response

    client.meta.events.register(f"before-send.sqs.{operation}", answer)
