"""The function under awslambdaric and AWS's Runtime Interface Emulator, as Lambda runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libretranslatepy
import pytest

from local.emulator import HTTP_HANDLER, Emulator, emulator
from local.invoke import handler_for
from tests.events import endless_texts, http_api_event
from tests.http_bridge import http_bridge
from tests.paths import ROOT

EVENT_FILES = sorted((ROOT / "events").glob("*.json"))
FIELDS = {"q": "Where is the nearest train station?", "source": "en", "target": "zh"}


@pytest.fixture(scope="module")
def environment(int8_pack: Path) -> dict[str, str]:
    return {"MARIAN_PACK": str(int8_pack)}


@pytest.fixture(scope="module")
def running(environment: dict[str, str]) -> Iterator[Emulator]:
    with emulator(HTTP_HANDLER, environment=environment) as started:
        yield started


def invoke(running: Emulator, event: dict[str, Any]) -> Any:
    return json.loads(running.invoke(json.dumps(event).encode()))


@pytest.mark.parametrize("file", EVENT_FILES, ids=lambda file: file.stem)
def test_every_sample_event(environment: dict[str, str], file: Path) -> None:
    event = json.loads(file.read_text("utf-8"))

    with emulator(handler_for(event), environment=environment) as running:
        response = invoke(running, event)

    if "Records" in event:
        failures = {failure["itemIdentifier"] for failure in response["batchItemFailures"]}
        assert len(failures) + len(response["results"]) == len(event["Records"])
        assert bool(failures) == ("malformed" in file.stem)
    else:
        assert response["statusCode"] == 200
        assert response["headers"]["Content-Type"] == "application/json"
        json.loads(response["body"])


def test_a_cold_call_and_a_warm_one_agree(environment: dict[str, str]) -> None:
    event = http_api_event("POST", "/translate", FIELDS)

    with emulator(HTTP_HANDLER, environment=environment) as running:
        cold = invoke(running, event)
        warm = invoke(running, event)

    assert cold == warm
    assert cold["statusCode"] == 200


def test_a_bad_body_is_answered_and_the_function_lives_on(running: Emulator) -> None:
    bad = invoke(running, http_api_event("POST", "/translate", "{not JSON"))
    good = invoke(running, http_api_event("POST", "/translate", FIELDS))

    assert bad["statusCode"] == 400
    assert "not valid application/json" in json.loads(bad["body"])["error"]
    assert good["statusCode"] == 200


def test_an_oversized_body_is_413(running: Emulator) -> None:
    response = invoke(running, http_api_event("POST", "/translate", {**FIELDS, "q": "word " * 1_000_000}))

    assert response["statusCode"] == 413
    assert "5000000 characters" in json.loads(response["body"])["error"]


def test_more_than_the_time_allows_is_413_before_the_time_is_up(environment: dict[str, str]) -> None:
    slow = http_api_event("POST", "/translate", {**FIELDS, "q": endless_texts()})
    environment = {**environment, "MARIAN_MAX_CHARACTERS": "1000000"}
    quick = http_api_event("POST", "/translate", FIELDS)

    with emulator(HTTP_HANDLER, timeout=3, environment=environment) as running:
        started = time.monotonic()
        response = invoke(running, slow)
        assert time.monotonic() - started < 3.5
        assert response["statusCode"] == 413
        assert "too much to translate in the time there is" in json.loads(response["body"])["error"]
        assert invoke(running, quick)["statusCode"] == 200


def test_a_timeout_ends_the_call_and_the_next_starts_afresh(int8_pack: Path, tmp_path: Path) -> None:
    # A pack on storage that does not answer: opening a pipe waits for somebody to write into it.
    pack = tmp_path / "pack"
    pack.mkdir()
    os.mkfifo(pack / "manifest.json")
    quick = http_api_event("POST", "/translate", FIELDS)

    # The emulator itself may take two seconds of the next call to see that the runtime is gone.
    with emulator(HTTP_HANDLER, timeout=5, environment={"MARIAN_PACK": str(pack)}) as running:
        response = running.invoke(json.dumps(quick).encode()).decode()
        assert "Task timed out after 5.00 seconds" in response

        (pack / "manifest.json").unlink()
        shutil.copytree(int8_pack, pack, dirs_exist_ok=True)
        assert invoke(running, quick)["statusCode"] == 200


def test_a_wrong_setting_is_answered_and_not_died_of(environment: dict[str, str]) -> None:
    with emulator(HTTP_HANDLER, environment={**environment, "MARIAN_THREADS": "many"}) as running:
        response = invoke(running, http_api_event("POST", "/translate", FIELDS))

    assert response["statusCode"] == 500
    assert "not set up correctly" in json.loads(response["body"])["error"]


def test_preloading_happens_before_the_first_event(environment: dict[str, str]) -> None:
    with emulator(HTTP_HANDLER, environment={**environment, "MARIAN_PRELOAD": "true"}) as running:
        assert invoke(running, http_api_event("POST", "/translate", FIELDS))["statusCode"] == 200

    program = (
        "import function.http_handler, function.service.translation as t; print(vars(t.translator()._model).keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **environment, "MARIAN_PRELOAD": "true"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "_search" in done.stdout


def test_libretranslates_own_python_client(running: Emulator) -> None:
    with http_bridge(running) as url:
        client = libretranslatepy.LibreTranslateAPI(url)

        assert client.languages()[0] == {"code": "en", "name": "English", "targets": ["zh-Hans"]}
        translated = client.translate(FIELDS["q"], "en", "zh")

    expected = json.loads(invoke(running, http_api_event("POST", "/translate", FIELDS))["body"])
    assert translated == expected["translatedText"]
