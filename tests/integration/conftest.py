"""One Docker engine for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.docker import DockerError, Engine, docker_engine
from local.emulator import EmulatorError


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    try:
        context = docker_engine()
        started = context.__enter__()
    except (DockerError, EmulatorError) as error:
        pytest.skip(str(error))
    try:
        yield started
    finally:
        context.__exit__(None, None, None)
