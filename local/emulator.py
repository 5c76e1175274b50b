"""AWS's Runtime Interface Emulator around the real awslambdaric: the function as Lambda runs it, without Docker."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

HTTP_HANDLER = "function.http_handler.handler"
QUEUE_HANDLER = "function.queue_handler.handler"

_ROOT = Path(__file__).parent.parent
ARCHITECTURE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
EXECUTABLE = _ROOT / "build" / "emulator" / "samcli" / "local" / "rapid" / f"aws-lambda-rie-{ARCHITECTURE}"

_START_SECONDS = 10.0


class EmulatorError(Exception):
    """The emulator is not there or does not start."""


@dataclass(frozen=True)
class Emulator:
    """A running emulator. It takes one event at a time: a second one while it works would end it."""

    url: str
    timeout: int  # seconds

    def invoke(self, event: bytes) -> bytes:
        """Send an event and return the function's response, or the emulator's words when it timed out or died."""
        with urllib.request.urlopen(self.url, data=event, timeout=self.timeout + _START_SECONDS) as response:  # nosec B310
            content: bytes = response.read()
            return content


@contextmanager
def emulator(
    handler: str, *, timeout: int = 30, memory: int = 1769, environment: Mapping[str, str] | None = None
) -> Iterator[Emulator]:
    """Run the emulator with `handler`; the function starts with the first event.

    Args:
        timeout: seconds that the function may take for an event, its cold start included.
        memory: megabytes that the function is told it has.
        environment: variables on top of this process's own.

    Raises:
        EmulatorError: the emulator is not installed, or does not answer in time.
    """
    if not EXECUTABLE.is_file():
        raise EmulatorError(f"{EXECUTABLE} is missing: `make emulator` installs it.")
    port, runtime_port = _free_ports(2)
    command = [
        str(EXECUTABLE),
        *("--log-level", "error"),
        *("--runtime-interface-emulator-address", f"127.0.0.1:{port}"),
        *("--runtime-api-address", f"127.0.0.1:{runtime_port}"),
        *(sys.executable, "-m", "awslambdaric", handler),
    ]
    variables = {
        **os.environ,
        "AWS_LAMBDA_FUNCTION_NAME": "marian-lambda",
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout),
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory),
        **(environment or {}),
    }
    process = subprocess.Popen(command, cwd=_ROOT, env=variables, stdout=sys.stderr, start_new_session=True)
    try:
        _wait_for(port, process)
        yield Emulator(f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations", timeout)
    finally:
        _stop(process)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise EmulatorError(f"the emulator did not start within {_START_SECONDS:.0f} s (exit status {process.poll()}).")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the emulator and the function, which share a process group of their own."""
    for stop in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, stop)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=3)
