"""The roofline's other side: reading memory as fast as one thread of numpy can."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.backend import Job
from benchmarks.work import Output, Read, Work

_TRIALS = 7


class Memory:
    """Reads a buffer. Several ways are tried and the fastest is taken, so that the roofline is honest."""

    def job(self, work: Work) -> Job:
        if not isinstance(work, Read):
            raise NotImplementedError(f"{type(work).__name__} is no work for memory alone")
        read = min(_ways(work.bytes), key=_fastest_of_some)

        def run() -> Output:
            for _ in range(work.repeats):
                read()
            return Output()

        return run


def _ways(size: int) -> list[Callable[[], Any]]:
    buffer = np.random.default_rng(1).integers(0, 100, size // 4096 * 4096, np.uint8)
    floats = np.ones(buffer.nbytes // 4, np.float32)
    wide, narrow = floats.reshape(-1, 1024), floats.reshape(1024, -1)
    wide_vector, narrow_vector = np.ones(wide.shape[1], np.float32), np.ones(narrow.shape[1], np.float32)
    integers = buffer.view(np.int64)
    return [
        lambda: np.dot(floats, floats),  # both operands are one buffer: it is read from memory once
        lambda: wide @ wide_vector,
        lambda: narrow @ narrow_vector,
        lambda: np.bitwise_or.reduce(integers),
        buffer.max,
    ]


def _fastest_of_some(read: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(_TRIALS):
        started = time.perf_counter()
        read()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
