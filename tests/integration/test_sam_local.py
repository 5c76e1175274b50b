"""What `sam build` built, under `sam local`: the functions and their layers in containers, with Lambda's Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import libretranslatepy
import pytest

from local.docker import Engine
from local.sam import EVENTS, FIELDS, invoke, start_api
from local.web import send, send_json


@pytest.fixture(scope="module")
def url(engine: Engine) -> Iterator[str]:
    with start_api(engine) as running:
        yield running


@pytest.mark.parametrize("file", EVENTS, ids=lambda file: file.stem)
def test_every_sample_event(engine: Engine, file: Path) -> None:
    invocation = invoke(engine, file)

    assert invocation.problem is None
    if "Records" in json.loads(file.read_text("utf-8")):
        assert bool(invocation.response["batchItemFailures"]) == ("malformed" in file.stem)


def test_a_failure_is_told_although_sam_exits_with_0(engine: Engine, tmp_path: Path) -> None:
    # Records without a message id are none that SQS sends: the function cannot but fail.
    event = tmp_path / "event.json"
    event.write_text('{"Records": [{}]}', "utf-8")

    assert "the function failed" in str(invoke(engine, event).problem)


def test_json_and_a_form_get_the_same_translation(url: str) -> None:
    form = send(f"{url}/translate", urlencode(FIELDS).encode(), {"Content-Type": "application/x-www-form-urlencoded"})

    assert form.status == 200
    assert form.content == send_json(f"{url}/translate", FIELDS).content


def test_libretranslates_own_python_client(url: str) -> None:
    client = libretranslatepy.LibreTranslateAPI(url)

    assert client.languages()[0]["code"] == "en"
    assert client.translate(FIELDS["q"], "en", "zh") == send_json(f"{url}/translate", FIELDS).content["translatedText"]


def test_every_route_is_the_functions(url: str) -> None:
    assert send(f"{url}/health").content["status"] == "ok"
    assert send(f"{url}/").status == 404
    assert send(f"{url}/nowhere").status == 404
    assert send(f"{url}/translate").status == 405
    assert send(f"{url}/translate", b"{}", method="PUT").status == 405
    assert "error" in send_json(f"{url}/translate", {"source": "en", "target": "zh"}).content
