"""Servers that are started for a while: a port for them, waiting until they answer, ending them."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM, Signals, signal


def clean_up_at_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does: by way of everything that is to be ended first."""
    signal(SIGTERM, lambda *_: sys.exit(128 + SIGTERM))


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def running(
    command: list[str],
    *,
    environment: dict[str, str],
    folder: Path,
    log: Path,
    stop_signal: Signals = SIGTERM,
    stop_seconds: float = 60.0,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a session of its own, so that Ctrl-C reaches it in our order: not at once, but when we end it.

    Args:
        folder: where it runs.
        log: file for its output.
        stop_signal: what makes it clean up and end.
        stop_seconds: how long that may take; then it is killed.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(stop_signal)
        try:
            process.wait(stop_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers_in_time(process: subprocess.Popen[bytes], asks: Callable[[], bool], seconds: float) -> bool:
    """Ask again and again until it says yes, fails for good, or the time is up; errors of the network mean no."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if asks():
                return True
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    return False
