"""The queue handler translates what it can and reports the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from function.engine.pack import PackError
from function.http_handler import handler as http_handler
from function.queue_handler import handler
from tests.events import http_api_event, sqs_event

pytestmark = pytest.mark.usefixtures("service")

TEXTS = ["Good morning.", "Where is the bathroom?", "I would like a cup of coffee, please."]


def record(id_: str, q: Any, **fields: Any) -> dict[str, Any]:
    return {"job": "j", "id": id_, "q": q, "source": "en", "target": "zh", **fields}


def failed(response: dict[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


def test_a_batch_gives_a_result_for_each_record() -> None:
    response = handler(sqs_event(record("a", TEXTS[0]), record("b", TEXTS[1:], details=True), record("c", [])), None)

    assert failed(response) == []
    by_id = {result["id"]: result for result in response["results"]}
    assert list(by_id) == ["a", "b", "c"]
    assert isinstance(by_id["a"]["translatedText"], str)
    assert len(by_id["b"]["translatedText"]) == len(by_id["b"]["scores"]) == 2
    assert by_id["c"]["translatedText"] == []


def test_a_record_gives_what_http_gives() -> None:
    fields = {"q": TEXTS[0], "source": "auto", "target": "zh-Hans", "details": True}

    (result,) = handler(sqs_event({"job": "j", "id": "a", **fields}), None)["results"]

    answer = json.loads(http_handler(http_api_event("POST", "/translate", fields), None)["body"])
    assert result == {"job": "j", "id": "a", **answer}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("not JSON", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ({"q": "No id.", "job": "j", "source": "en", "target": "zh"}, "id must be 1 to 128 letters"),
        ({"q": "No job.", "id": "x", "source": "en", "target": "zh"}, "job must be 1 to 128 letters"),
        (record("", "An empty id."), "id must be 1 to 128 letters"),
        (record("../x", "An id that leads astray."), "id must be 1 to 128 letters"),
        (record("\ud800", "An id that cannot be written."), "id must be 1 to 128 letters"),
        (record("x", "Both.", s3={"bucket": "b", "key": "k"}), "give q or s3, not both"),
        (record("x", None, s3={"bucket": "b"}), "s3 must be an object with bucket, key"),
        (record("x", None, s3="key"), "s3 must be an object"),
        ("[" * 100_000, "not valid JSON"),
        (record("x", "Hello.", alternatives=float("inf")), "alternatives must be a whole number"),
        ({"job": "j", "id": "x", "source": "en", "target": "zh"}, "missing q parameter"),
        (record("x", "Hello.", target="fr"), "fr is not supported"),
        (record("x", "Hello.", format="markdown"), "format must be text or html"),
        (record("x", "a" * 60_000), "60000 characters"),
    ],
)
def test_a_bad_record_is_reported_and_harms_no_other(caplog: pytest.LogCaptureFixture, bad: Any, words: str) -> None:
    good = [record(str(number), TEXTS[number % 3]) for number in range(9)]

    response = handler(sqs_event(*good[:4], bad, *good[4:]), None)

    assert failed(response) == ["4"]
    assert response["results"] == handler(sqs_event(*good), None)["results"]
    assert "record 4: " in caplog.text
    assert words in caplog.text


def test_only_bad_records() -> None:
    response = handler(sqs_event("x", "y"), None)

    assert failed(response) == ["0", "1"]
    assert response["results"] == []


def test_without_a_usable_pack_the_whole_batch_is_kept(service: pytest.MonkeyPatch) -> None:
    service.setenv("MARIAN_PACK", "/nowhere")

    with pytest.raises(PackError):
        handler(sqs_event(record("a", TEXTS[0])), None)
