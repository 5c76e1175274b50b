"""Worker processes, seen from the command that times them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.errors import BenchError
from benchmarks.records import from_json
from benchmarks.work import Answer, Decode, Output, Translate, Work, to_message

ROOT = Path(__file__).parent.parent
PEERS_PYTHON = ROOT / ".venv-bench" / "bin" / "python"

_CLOSING_SECONDS = 10

T = TypeVar("T")


class WorkerError(Exception):
    """A worker process could not do what it was asked; the message is its own."""


@dataclass(frozen=True)
class Launch:
    """What a worker process holds, and with how many threads."""

    backend: str
    model: Path
    checkpoint: Path
    threads: int  # for one matrix product
    inter_threads: int = 1  # CTranslate2's batches side by side


class Worker:
    """One worker process. It loads while others do; `wait_until_ready` waits for it.

    Raises:
        BenchError: the Python that it needs is not there.
        WorkerError: from every method, when the process says so or has ended.
    """

    def __init__(self, launch: Launch) -> None:
        self._name = launch.backend
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (`close` closes it)
        arguments = [launch.backend, "--model", str(launch.model), "--checkpoint", str(launch.checkpoint)]
        threads = ["--threads", str(launch.threads), "--inter-threads", str(launch.inter_threads)]
        self._process = subprocess.Popen(
            [str(python_for(launch.backend)), "-m", "benchmarks.worker", *arguments, *threads],
            cwd=ROOT,
            env=environment(launch.threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # Ctrl-C is the parent's affair
        )
        if not self._process.stdin or not self._process.stdout:
            raise WorkerError("the process has no pipes")
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def wait_until_ready(self) -> None:
        self.receive()

    def send(self, message: dict[str, Any]) -> None:
        try:
            self._requests.write(json.dumps(message) + "\n")
            self._requests.flush()
        except BrokenPipeError as error:
            raise WorkerError(self._last_words()) from error

    def receive(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise WorkerError(self._last_words())
        message: dict[str, Any] = json.loads(line)
        if "error" in message:
            raise WorkerError(message["error"])
        return message

    def close(self) -> None:
        """End the process, whatever it is doing."""
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self._requests.close()
        self._process.terminate()
        try:
            self._process.wait(_CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._errors.close()

    def _last_words(self) -> str:
        code = self._process.wait(_CLOSING_SECONDS)
        self._errors.seek(0)
        return f"the process of {self._name} ended with {code}: {self._errors.read().strip()[-500:]}"


class Team:
    """Workers that share each piece of work, or one that does it all."""

    def __init__(self, launch: Launch, workers: int = 1) -> None:
        self._workers = [Worker(launch) for _ in range(workers)]

    def wait_until_ready(self) -> None:
        for worker in self._workers:
            worker.wait_until_ready()

    def prepare(self, work: Work) -> None:
        for worker, share in zip(self._workers, shares(work, len(self._workers)), strict=True):
            worker.send({"prepare": to_message(share)})
            worker.receive()

    def run(self) -> Answer:
        """Do the prepared work once.

        One worker's time is its own. Of several it is from the first request to the last answer, as their user
        would wait; that the pipes are in it counts against them.
        """
        started = time.perf_counter()
        for worker in self._workers:
            worker.send({"run": True})
        answers = [from_json(Answer, worker.receive()) for worker in self._workers]
        if len(answers) == 1:
            return answers[0]
        return Answer(
            seconds=time.perf_counter() - started,
            cpu_seconds=sum(answer.cpu_seconds for answer in answers),
            peak_rss_mb=sum(answer.peak_rss_mb for answer in answers),
            output=Output(
                [length for answer in answers for length in answer.output.lengths],
                [text for answer in answers for text in answer.output.texts],
            ),
        )

    def close(self) -> None:
        for worker in self._workers:
            worker.close()


def shares(work: Work, count: int) -> list[Work]:
    """The work in so many equal parts, in its order."""
    if count == 1:
        return [work]
    if isinstance(work, Decode):
        return [replace(work, sources=part) for part in _parts(work.sources, count)]
    if isinstance(work, Translate):
        return [replace(work, texts=part) for part in _parts(work.texts, count)]
    raise ValueError(f"{type(work).__name__} cannot be shared")


def _parts(items: list[T], count: int) -> list[list[T]]:
    size = -(-len(items) // count)
    return [items[start : start + size] for start in range(0, size * count, size)]


def python_for(backend: str) -> Path:
    """The Python whose environment has the system.

    Raises:
        BenchError: it is not there.
    """
    if backend in ("ours", "memory"):
        return Path(sys.executable)
    if not PEERS_PYTHON.is_file():
        raise BenchError(
            f"{PEERS_PYTHON.relative_to(ROOT)} is missing: `make bench` and `make bench-cold` set it up "
            "before they measure."
        )
    return PEERS_PYTHON


def environment(threads: int) -> dict[str, str]:
    """Every thread pool that a library may have is told its size; nothing looks for files elsewhere."""
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
    return {
        **os.environ,
        **dict.fromkeys(counts, str(threads)),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "ORT_DISABLE_TELEMETRY": "1",
        "PYTHONWARNINGS": "ignore",
    }
