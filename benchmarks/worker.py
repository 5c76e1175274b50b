"""A process that holds one system: `python -m benchmarks.worker BACKEND ...`.

Line protocol, JSON both ways. It says {"ready": true} when the model is loaded. {"prepare": work} sets up a piece of
work and warms it up; {"run": true} does it once and answers with the time that it took. An {"error": ...} is the
answer to what could not be done. It ends with its input.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TextIO

from benchmarks.backend import Backend, Job, Options
from benchmarks.work import Answer, Decode, Translate, Work, from_message

_WARM_UP_TOKENS = 4
_WARM_UP_TEXTS = 4


def serve(load: Callable[[], Backend], requests: TextIO, answers: TextIO) -> None:
    """Load the system, then answer each request until there are no more."""

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    job: Job | None = None
    try:
        backend = load()
    except Exception as error:  # the parent reports it, whatever it is
        answer({"error": _describe(error)})
        return
    answer({"ready": True})
    for line in requests:
        try:
            request = json.loads(line)
            if "prepare" in request:
                work = from_message(request["prepare"])
                backend.job(_short(work))()
                job = backend.job(work)
                answer({"prepared": True})
            elif job is None:
                raise ValueError("nothing was prepared")
            else:
                answer(asdict(_timed(job)))
        except Exception as error:
            answer({"error": _describe(error)})


def peak_rss_mb() -> float:
    """The most memory that this process has had resident, in 10^6 bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        (kibibytes,) = (int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return kibibytes * 1024 / 1e6


def _short(work: Work) -> Work:
    """Enough of the work to have every kernel, buffer and thread at hand."""
    if isinstance(work, Decode):
        return replace(work, target_tokens=min(_WARM_UP_TOKENS, work.target_tokens))
    if isinstance(work, Translate):
        return replace(work, texts=work.texts[:_WARM_UP_TEXTS])
    return work


def _timed(job: Job) -> Answer:
    cpu_started, started = time.process_time(), time.perf_counter()
    output = job()
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    return Answer(seconds, cpu_seconds, peak_rss_mb(), output)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _load(name: str, options: Options) -> Backend:
    """Each backend imports what it needs here: no process has all of it, and ours must not have torch."""
    if name == "ours":
        from benchmarks.ours import Ours  # noqa: PLC0415

        return Ours(options)
    if name == "memory":
        from benchmarks.memory import Memory  # noqa: PLC0415

        return Memory()
    from benchmarks.peers import BACKENDS  # noqa: PLC0415

    return BACKENDS[name](options)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description="Hold one system and time it.")
    parser.add_argument("backend", help="ours, memory, transformers, optimum, loop or ctranslate2")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--inter-threads", type=int, default=1)
    arguments = parser.parse_args()
    options = Options(arguments.model, arguments.checkpoint, arguments.threads, arguments.inter_threads)
    # Libraries that print to standard output must not get between the lines of the protocol.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(lambda: _load(arguments.backend, options), sys.stdin, answers)


if __name__ == "__main__":
    main()
