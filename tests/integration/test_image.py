"""The container image of the Dockerfile: as Lambda runs it, and as a worker."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest

from local.docker import Engine
from local.processes import free_port
from tests.events import http_api_event
from tests.paths import ROOT

IMAGE = "marian-lambda-test"


def docker(engine: Engine, *arguments: str) -> str:
    # The plain builder: the other is a plug-in that not every installation has.
    environment = {**os.environ, **engine.environment, "DOCKER_BUILDKIT": "0"}
    done = subprocess.run(
        ["docker", *arguments], env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image(engine: Engine) -> Iterator[Engine]:
    if not engine.has_image:
        pytest.skip("this engine would have to pull AWS's base image")
    docker(engine, "build", "--tag", IMAGE, ".")
    yield engine
    docker(engine, "rmi", "--force", IMAGE)


def test_as_a_lambda_function(image: Engine) -> None:
    port = free_port()
    container = docker(image, "run", "--detach", "--rm", "--publish", f"127.0.0.1:{port}:8080", IMAGE)
    try:
        event = http_api_event("POST", "/translate", {"q": "Good morning.", "source": "en", "target": "zh"})
        url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
        response = json.loads(post(url, json.dumps(event).encode()))
    finally:
        docker(image, "kill", container)

    assert response["statusCode"] == 200
    assert json.loads(response["body"])["translatedText"]


def post(url: str, body: bytes) -> bytes:
    """The answer, once there is one: Docker takes connections before the emulator in the container does."""
    for attempt in range(100):
        try:
            with urllib.request.urlopen(url, data=body, timeout=30) as answer:
                content: bytes = answer.read()
                return content
        except OSError:
            if attempt == 99:
                raise
            time.sleep(0.1)
    raise AssertionError


def test_as_a_worker(image: Engine) -> None:
    run = ["run", "--rm", "--entrypoint", "python3", IMAGE, "-m", "function.queue_worker"]

    assert "--queue-url" in docker(image, *run, "--help")


def test_nothing_but_what_is_needed_is_in_it(image: Engine) -> None:
    layers = docker(image, "run", "--rm", "--entrypoint", "python3", IMAGE, "-c", LISTING)

    assert json.loads(layers) == {"/var/task": ["function"], "/opt": ["model", "python"]}


LISTING = "import json, os; print(json.dumps({folder: sorted(os.listdir(folder)) for folder in ('/var/task', '/opt')}))"
