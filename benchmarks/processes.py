"""Worker processes, seen from the command that times them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchError
from benchmarks.records import from_json
from benchmarks.work import Answer, Work, to_message

ROOT = Path(__file__).parent.parent
PEERS_PYTHON = ROOT / ".venv-bench" / "bin" / "python"

_CLOSING_SECONDS = 10


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
        self._receive()

    def prepare(self, work: Work) -> None:
        self._ask({"prepare": to_message(work)})

    def run(self) -> Answer:
        """Do the prepared work once."""
        return from_json(Answer, self._ask({"run": True}))

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            self._requests.write(json.dumps(message) + "\n")
            self._requests.flush()
        except BrokenPipeError as error:
            raise WorkerError(self._last_words()) from error
        return self._receive()

    def _receive(self) -> dict[str, Any]:
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
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    return {
        **os.environ,
        **dict.fromkeys(counts, str(threads)),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "ORT_DISABLE_TELEMETRY": "1",
        "PYTHONWARNINGS": "ignore",
    }
