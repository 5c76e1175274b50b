"""`sam local` with this machine's Docker engine, or one started for it: `python -m local.sam`.

Runs every sample event through `sam local invoke`, sends requests to `sam local start-api`, prints what comes back.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from local.docker import DockerError, Engine, docker_engine
from local.emulator import ARCHITECTURE, QUEUE_HANDLER, EmulatorError
from local.invoke import handler_for
from local.processes import answers_in_time, clean_up_at_sigterm, free_port, running
from local.web import Answer, send, send_json

ROOT = Path(__file__).parent.parent
EVENTS = sorted((ROOT / "events").glob("*.json"))

_SAM = ROOT / ".venv-sam" / "bin" / "sam"
_TEMPLATE = ROOT / "build" / "sam" / "template.yaml"
_LOG = ROOT / "build" / "sam-local.log"
_INVOKE_SECONDS = 120
_START_SECONDS = 60.0

FIELDS = {"q": "The weather today is quite nice.", "source": "en", "target": "zh"}


class SamError(Exception):
    """`sam local` is not set up, or does not start."""


@dataclass(frozen=True)
class Invocation:
    """What came of an event.

    Attributes:
        response: the function's, decoded; None for none.
        problem: what is wrong with it; None for nothing.
    """

    response: Any
    seconds: float
    problem: str | None


def sam_command(*arguments: str) -> list[str]:
    """A command of SAM on what `make sam-build` built.

    Raises:
        SamError: it is not built.
    """
    for path, target in ((_SAM, "validate"), (_TEMPLATE, "sam-build")):
        if not path.is_file():
            raise SamError(f"{path} is missing: `make {target}` makes it.")
    # Saved settings are for real deployments: samconfig.toml has no part of this name.
    return [str(_SAM), *arguments, "--template", str(_TEMPLATE), "--config-env", "local"]


def invoke(engine: Engine, event_file: Path) -> Invocation:
    """Run an event through `sam local invoke`, in a container of its own.

    Raises:
        SamError: nothing is built.
    """
    event = json.loads(event_file.read_text("utf-8"))
    function = "QueueFunction" if handler_for(event) == QUEUE_HANDLER else "HttpFunction"
    command = _local_command(engine, "invoke", function, "--event", str(event_file))
    started = time.monotonic()
    try:
        done = subprocess.run(
            command, env=_environment(engine), cwd=ROOT, capture_output=True, timeout=_INVOKE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SamError(f"sam local invoke {function} did not end within {_INVOKE_SECONDS} s.") from error
    seconds = time.monotonic() - started
    # The exit status is 0 even when the function failed. The response is the last line, and a timeout leaves none.
    try:
        response = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return Invocation(
            None, seconds, f"no response; sam's last words: {done.stderr.decode(errors='replace')[-500:]}"
        )
    return Invocation(response, seconds, _problem(event, response))


def _problem(event: Any, response: Any) -> str | None:
    if "errorMessage" in response:
        return f"the function failed: {response['errorMessage']}"
    if "Records" not in event:
        return None if response["statusCode"] == 200 else f"status {response['statusCode']}"
    count = len(response["results"]) + len(response["batchItemFailures"])
    return None if count == len(event["Records"]) else f"{count} of {len(event['Records'])} records came back"


@contextmanager
def start_api(engine: Engine) -> Iterator[str]:
    """Run `sam local start-api`; gives its URL.

    Raises:
        SamError: nothing is built, or it does not start.
    """
    port = free_port()
    command = _local_command(engine, "start-api", "--port", str(port), "--warm-containers", "LAZY")
    # At SIGINT it removes its containers.
    with running(
        command, environment=_environment(engine), folder=ROOT, log=_LOG, stop_signal=signal.SIGINT
    ) as process:

        def listens() -> bool:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True

        if not answers_in_time(process, listens, _START_SECONDS):
            raise SamError(f"sam local start-api did not start (exit status {process.poll()}); see {_LOG}")
        yield f"http://127.0.0.1:{port}"


def _local_command(engine: Engine, step: str, *arguments: str) -> list[str]:
    return [
        *sam_command("local", step, *arguments),
        *("--parameter-overrides", f"Architecture={ARCHITECTURE}"),
        *("--env-vars", str(ROOT / "local" / "sam-env.json")),  # queue results then come back in the response
        *("--layer-cache-basedir", str(ROOT / "build" / "sam-layers")),
        *(["--skip-pull-image"] if engine.has_image else []),
    ]


def _environment(engine: Engine) -> dict[str, str]:
    # SAM puts a variable of the shell in the place of the template's of the same name.
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MARIAN_"))}
    # The functions are handed credentials; with these they reach nothing.
    credentials = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
    return {**ours, **credentials, **engine.environment, "SAM_CLI_TELEMETRY": "0"}


# --------------------------------------------------------------------------------- what `make sam-local` shows


def show(engine: Engine) -> int:
    """Run everything once; gives the number of problems."""
    problems = 0
    for file in EVENTS:
        invocation = invoke(engine, file)
        print(f"sam local invoke --event events/{file.name}: {invocation.seconds:.1f} s", flush=True)
        print(f"  {_json(_shown(invocation.response))}")
        if invocation.problem is not None:
            problems += 1
            print(f"  PROBLEM: {invocation.problem}")
    with start_api(engine) as url:
        print(f"sam local start-api: {url}")
        for what, answer, expected in _requests(url):
            print(f"{what}: {answer.status}, {answer.seconds:.2f} s", flush=True)
            print(f"  {_json(answer.content)}")
            if answer.status != expected:
                problems += 1
                print(f"  PROBLEM: status {expected} was expected")
    return problems


def _requests(url: str) -> Iterator[tuple[str, Answer, int]]:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    yield "GET /health", send(f"{url}/health"), 200
    yield "GET /languages", send(f"{url}/languages"), 200
    yield "POST /translate", send_json(f"{url}/translate", FIELDS), 200
    yield "POST /translate, a form", send(f"{url}/translate", urlencode(FIELDS).encode(), form), 200
    yield "POST /translate, without q", send_json(f"{url}/translate", {"source": "en", "target": "zh"}), 400
    yield "GET /nowhere", send(f"{url}/nowhere"), 404


def _shown(response: Any) -> Any:
    return json.loads(response["body"]) if isinstance(response, dict) and response.get("body") else response


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def main() -> int:
    clean_up_at_sigterm()
    try:
        with docker_engine() as engine:
            problems = show(engine)
    except (DockerError, EmulatorError, SamError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(f"{problems} problems" if problems else "all is well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
