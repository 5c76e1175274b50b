"""Bulk work while everything goes wrong: no good message may be lost, doubled or changed.

`make test-chaos` sends 10,000 messages; CHAOS_MESSAGES in the environment says otherwise. Of them 5% are sent
twice, 2% are poison and 1% hold a text that is too long. Workers are killed without warning, stopped until
their messages have become visible to others, and all of them at once; storage answers late.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from function.engine.pack import ModelPack
from function.engine.translator import Translation, Translator
from tests.aws import Aws, Stack, ministack
from tests.paths import ROOT, held_out

MESSAGES = int(os.environ.get("CHAOS_MESSAGES", "10000"))
WORKERS = 3
SEED = int(os.environ.get("CHAOS_SEED", "1"))
LIMIT_SECONDS = 120 + MESSAGES * 0.12
VISIBILITY_SECONDS = 6
RECEIVES = 12  # so many that being held by workers that die is no reason to be given up

TOO_LONG = "one two three " * 4000  # more characters than a request may hold


class SlowProxy:
    """Passes connections to a port on, and now and then lets them wait."""

    def __init__(self, port: int, chance: random.Random) -> None:
        self._target = ("127.0.0.1", port)
        self._chance = chance
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while content := source.recv(65536):
                if self._chance.random() < 0.01:
                    time.sleep(self._chance.uniform(0.1, 2.0))
                sink.sendall(content)
        except OSError:
            pass
        for end in (source, sink):
            end.close()


class Workers:
    """Worker processes, and what befalls them."""

    def __init__(self, stack: Stack, environment: dict[str, str], log: Path) -> None:
        self._command = [sys.executable, "-m", "function.queue_worker", "--queue-url", stack.queue_url]
        self._environment = {**environment, "MARIAN_RESULTS_BUCKET": stack.bucket, "MARIAN_THREADS": "1"}
        self._log = log.open("w")
        self.processes: list[subprocess.Popen[bytes]] = []
        self.killed = self.stopped = self.restarts = 0

    def fill(self) -> None:
        self.processes = [process for process in self.processes if process.poll() is None]
        while len(self.processes) < WORKERS:
            self.processes.append(
                subprocess.Popen(
                    self._command, cwd=ROOT, env=self._environment, stderr=self._log, start_new_session=True
                )
            )

    def kill_one(self, chance: random.Random) -> None:
        victim = chance.choice(self.processes)
        victim.kill()
        victim.wait()
        self.killed += 1

    def stop_one(self, chance: random.Random) -> None:
        """Let one sleep with its messages in hand for longer than they stay hidden."""
        victim = chance.choice(self.processes)
        victim.send_signal(signal.SIGSTOP)
        threading.Timer(VISIBILITY_SECONDS + 2, victim.send_signal, [signal.SIGCONT]).start()
        self.stopped += 1

    def restart_all(self) -> None:
        self.end()
        self.restarts += 1

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    with ministack(tmp_path_factory.mktemp("ministack") / "log") as running:
        yield running


def send(aws: Aws, stack: Stack, bodies: list[str]) -> None:
    for start in range(0, len(bodies), 10):
        entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies[start : start + 10])]
        assert not aws.sqs.send_message_batch(QueueUrl=stack.queue_url, Entries=entries).get("Failed")


@dataclass(frozen=True)
class Work:
    """What is sent, and what must come of it."""

    bodies: list[str]
    good: dict[str, str]  # text by id
    poison: int

    @property
    def duplicates(self) -> int:
        return len(self.bodies) - self.poison - len(self.good)


def make_work(chance: random.Random, sentences: list[str]) -> Work:
    good: dict[str, str] = {}
    bad: list[str] = []
    twice: list[str] = []
    for number in range(MESSAGES):
        kind = chance.random()
        fields: dict[str, Any] = {"job": "chaos", "id": f"{number:06}", "source": "en", "target": "zh"}
        if kind < 0.02:
            bad.append(chance.choice(["not JSON", json.dumps({**fields, "q": 5}), json.dumps({**fields, "job": ""})]))
        elif kind < 0.03:
            bad.append(json.dumps({**fields, "q": TOO_LONG}))
        else:
            good[fields["id"]] = chance.choice(sentences)
            if kind > 0.95:
                twice.append(fields["id"])
    messages = [
        json.dumps({"job": "chaos", "id": id_, "q": good[id_], "source": "en", "target": "zh"})
        for id_ in [*good, *twice]
    ]
    bodies = [*messages, *bad]
    chance.shuffle(bodies)
    return Work(bodies, good, len(bad))


def play(aws: Aws, stack: Stack, work: Work, workers: Workers, chance: random.Random) -> None:
    """Send the work while workers come and go, until the queue is empty."""
    sender = threading.Thread(target=send, args=(aws, stack, work.bodies))
    started = time.monotonic()
    sender.start()
    restart_at = started + 15
    while sender.is_alive() or aws.count(stack.queue_url):
        assert time.monotonic() - started < LIMIT_SECONDS, f"{aws.count(stack.queue_url)} messages are left"
        workers.fill()
        time.sleep(chance.uniform(0.5, 1.5))
        fate = chance.random()
        if time.monotonic() > restart_at:
            workers.restart_all()
            restart_at = float("inf")
        elif fate < 0.15:
            workers.kill_one(chance)
        elif fate < 0.20:
            workers.stop_one(chance)


def test_every_good_message_has_one_right_result_and_the_dead_letters_are_the_poison(
    aws: Aws, fp32_pack: Path, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    stack = aws.stack(visibility_timeout=VISIBILITY_SECONDS, receives=RECEIVES)
    sentences = [row["en"] for row in held_out("test_tatoeba")[:300]]
    work = make_work(chance, sentences)
    proxy = SlowProxy(int(aws.environment["AWS_ENDPOINT_URL"].rpartition(":")[2]), random.Random(SEED))
    environment = {**os.environ, **aws.environment, "MARIAN_PACK": str(fp32_pack)}
    environment |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}
    workers = Workers(stack, environment, tmp_path / "log")
    started = time.monotonic()

    try:
        play(aws, stack, work, workers, chance)
    finally:
        workers.end()
        proxy.close()

    results = {key for key in aws.keys(stack.bucket, "chaos/") if not key.endswith(".error.json")}
    dead_letters, left = aws.count(stack.dlq_url), aws.count(stack.queue_url)
    print(
        f"\n{MESSAGES} messages, {work.duplicates} of them twice, {work.poison} poison; {workers.killed} workers "
        f"killed, {workers.stopped} stopped, {workers.restarts} full restarts; {len(results)} results, "
        f"{dead_letters} dead letters, {left} left; {time.monotonic() - started:.0f} s"
    )
    assert workers.killed > 0
    assert workers.restarts == 1
    assert results == {f"chaos/{id_}.json" for id_ in work.good}
    assert (dead_letters, left) == (work.poison, 0)
    translations = Translator(ModelPack.open(fp32_pack), threads=2).translate(sentences)
    expected = {
        sentence: result.text
        for sentence, result in zip(sentences, translations, strict=True)
        if isinstance(result, Translation)
    }
    wrong = [
        id_
        for id_, text in work.good.items()
        if aws.read(stack.bucket, f"chaos/{id_}.json")["translatedText"] != expected[text]
    ]
    assert wrong == []
