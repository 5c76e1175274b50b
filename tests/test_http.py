"""The HTTP handler speaks LibreTranslate's API, whichever kind of event brings the request."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from function import __version__
from function.http_handler import handler
from tests.events import Event, http_api_event, rest_api_event

TEXT = "Where is the nearest train station?"
FIELDS = {"q": TEXT, "source": "en", "target": "zh"}

pytestmark = pytest.mark.usefixtures("service")


def send(event: Any) -> tuple[int, Any]:
    response = handler(event, None)
    assert response["isBase64Encoded"] is False
    assert response["headers"]["Access-Control-Allow-Origin"] == "*"
    return response["statusCode"], json.loads(response["body"]) if response["body"] else None


def translated(event: Event) -> Any:
    status, content = send(event)
    assert status == 200, content
    return content["translatedText"]


def is_chinese(text: str) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for character in text)


@pytest.fixture
def expected() -> str:
    """What a plain JSON request gives; every other way to ask must give the same."""
    text = translated(http_api_event("POST", "/translate", FIELDS))
    assert is_chinese(text)
    return str(text)


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/x-amz-json-1.1", None],
)
def test_json_bodies(expected: str, content_type: str | None) -> None:
    assert translated(http_api_event("POST", "/translate", FIELDS, content_type)) == expected


def test_base64_bodies(expected: str) -> None:
    body = json.dumps(FIELDS).encode()
    assert translated(http_api_event("POST", "/translate", body)) == expected
    assert translated(rest_api_event("POST", "/translate", body)) == expected


def test_rest_api_events(expected: str) -> None:
    assert translated(rest_api_event("POST", "/translate", FIELDS)) == expected


@pytest.mark.parametrize("as_bytes", [False, True])
def test_form_bodies(expected: str, as_bytes: bool) -> None:
    form = urlencode(FIELDS)
    body = form.encode() if as_bytes else form
    assert translated(http_api_event("POST", "/translate", body, "application/x-www-form-urlencoded")) == expected


def test_multipart_bodies(expected: str) -> None:
    parts = [
        f'--X\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in FIELDS.items()
    ]
    body = "".join([*parts, "--X--\r\n"]).encode()
    assert translated(http_api_event("POST", "/translate", body, "multipart/form-data; boundary=X")) == expected


@pytest.mark.parametrize(
    ("stage", "path"), [("$default", "/translate/"), ("prod", "/prod/translate"), ("prod", "/translate")]
)
def test_paths_with_a_stage_or_a_slash_at_the_end(expected: str, stage: str, path: str) -> None:
    assert translated(http_api_event("POST", path, FIELDS, stage=stage)) == expected


def test_a_list_is_answered_with_a_list_in_its_order(expected: str) -> None:
    texts = [TEXT, "", "Good morning.", " - ", TEXT]

    results = translated(http_api_event("POST", "/translate", {**FIELDS, "q": texts}))

    assert [results[0], results[1], results[3], results[4]] == [expected, "", " - ", expected]
    assert is_chinese(results[2])
    assert translated(http_api_event("POST", "/translate", {**FIELDS, "q": []})) == []
    assert translated(http_api_event("POST", "/translate", {**FIELDS, "q": [TEXT]})) == [expected]


def test_auto_names_the_language_it_took() -> None:
    _, one = send(http_api_event("POST", "/translate", {**FIELDS, "source": "auto"}))
    _, many = send(http_api_event("POST", "/translate", {**FIELDS, "source": "auto", "q": [TEXT, TEXT]}))

    assert one["detectedLanguage"] == {"confidence": 0, "language": "en"}
    assert many["detectedLanguage"] == [one["detectedLanguage"]] * 2


def test_optional_fields_come_only_when_asked_for() -> None:
    _, plain = send(http_api_event("POST", "/translate", FIELDS))
    _, full = send(
        http_api_event("POST", "/translate", {**FIELDS, "q": [TEXT, "-"], "details": True, "alternatives": 2})
    )
    _, form = send(
        http_api_event(
            "POST", "/translate", urlencode({**FIELDS, "details": "true"}), "application/x-www-form-urlencoded"
        )
    )

    assert set(plain) == {"translatedText"}
    assert set(full) == {"translatedText", "scores", "quality", "problems", "alternatives"}
    assert full["scores"] == [form["scores"], None]
    assert form["scores"] < 0
    assert (full["quality"], full["problems"]) == (["ok", "ok"], [None, None])
    assert full["alternatives"] == [[], []]


def test_html_keeps_its_tags() -> None:
    fields = {**FIELDS, "q": '<p class="a">Where is the <b>station</b>?</p>', "format": "html"}

    text = translated(http_api_event("POST", "/translate", fields))

    assert text.startswith('<p class="a">')
    assert text.endswith("</p>")
    assert (text.count("<b>"), text.count("</b>")) == (1, 1)
    assert is_chinese(text)


def test_stages_can_be_chosen() -> None:
    text = "I am here.\nYou are there, and we wait."

    _, content = send(http_api_event("POST", "/translate", {**FIELDS, "q": text, "trace": True}))
    _, whole = send(
        http_api_event(
            "POST", "/translate", {**FIELDS, "q": text, "segmentation": "none", "typography": False, "trace": True}
        )
    )

    assert [segment["segment"] for segment in content["trace"]] == text.split("\n")
    assert content["trace"][0]["stages"][0]["stage"] == "decode"
    assert [segment["segment"] for segment in whole["trace"]] == [text]
    assert "typography" not in [stage["stage"] for stage in whole["trace"][0]["stages"]]


def test_a_doubtful_translation_is_flagged_unasked() -> None:
    """The starter model has nothing to say to this."""
    _, content = send(http_api_event("POST", "/translate", {**FIELDS, "q": ["Xqzvw kjhgf " * 12, TEXT]}))

    assert set(content) == {"translatedText", "quality", "problems"}
    assert content["quality"][0] in ("recovered", "suspect")
    assert content["quality"][1] == "ok"


def test_optional_fields_that_are_null_count_as_not_sent(expected: str) -> None:
    fields = {**FIELDS, "format": None, "alternatives": None, "details": None}
    assert send(http_api_event("POST", "/translate", fields)) == (200, {"translatedText": expected})


def test_every_answer_can_be_written_as_utf_8() -> None:
    for fields in ({"q": ["\ud800", "a \udfff"]}, {"target": "\ud800"}, {"format": "\ud800"}):
        response = handler(http_api_event("POST", "/translate", {**FIELDS, **fields}), None)
        assert response["statusCode"] in (200, 400)
        response["body"].encode("utf-8")


def test_languages_are_the_packs() -> None:
    assert send(http_api_event("GET", "/languages", "q=ignored")) == (
        200,
        [
            {"code": "en", "name": "English", "targets": ["zh-Hans"]},
            {"code": "zh-Hans", "name": "Chinese (Simplified)", "targets": []},
        ],
    )


def test_health_names_pack_and_version() -> None:
    assert send(http_api_event("GET", "/health")) == (
        200,
        {"status": "ok", "pack": "starter int8", "version": __version__},
    )


def test_preflight_requests_are_allowed() -> None:
    response = handler(http_api_event("OPTIONS", "/translate"), None)

    assert response["statusCode"] == 204
    assert response["headers"]["Access-Control-Allow-Methods"] == "POST, OPTIONS"
    assert response["headers"]["Access-Control-Allow-Headers"] == "*"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"q": None}, "missing q parameter"),
        ({"source": None}, "missing source parameter"),
        ({"target": None}, "missing target parameter"),
        ({"q": 5}, "q must be a string, it is a number"),
        ({"q": ["a", {}]}, r"q[1] must be a string, it is an object"),
        ({"source": "fr"}, "fr is not supported as source; supported: en"),
        ({"target": "zz"}, "zz is not supported as target; supported: zh-Hans"),
        ({"target": ["zh"]}, "is not supported as target"),
        ({"format": "markdown"}, "format must be text or html, it is 'markdown'"),
        ({"format": ["html"]}, "format must be text or html"),
        ({"segmentation": "words"}, "segmentation must be sentences or unwrap or none"),
        ({"spacing": "wide"}, "spacing must be keep or none or space"),
        ({"typography": "perhaps"}, "typography must be true or false"),
        ({"trace": 1.5}, "trace must be true or false"),
        ({"alternatives": -1}, "alternatives must be a whole number"),
        ({"alternatives": float("inf")}, "alternatives must be a whole number"),
        ({"alternatives": True}, "alternatives must be a whole number"),
        ({"details": 3}, "details must be true or false"),
    ],
)
def test_wrong_fields_are_400_with_words(fields: dict[str, Any], words: str) -> None:
    sent = {name: value for name, value in {**FIELDS, **fields}.items() if value is not None}

    status, content = send(http_api_event("POST", "/translate", sent))

    assert status == 400
    assert words in content["error"]


@pytest.mark.parametrize(
    ("body", "content_type", "status", "words"),
    [
        ("{", "application/json", 400, "not valid application/json"),
        ("", "application/json", 400, "not valid application/json"),
        (b"\xff", "application/json", 400, "not valid application/json"),
        ("[1]", "application/json", 400, "must be a JSON object"),
        ("[" * 100_000, "application/json", 400, "not valid application/json"),
        (b"q=%FF", "application/x-www-form-urlencoded", 400, "not valid application/x-www-form-urlencoded"),
        (b"\xff", "multipart/form-data; boundary=X", 400, "missing q"),
        (b"no parts", "multipart/form-data", 400, "missing q"),
        ("Hello.", "text/plain", 415, "text/plain is not supported"),
        ("Hello.", "a\nb", 415, "is not supported"),
    ],
)
def test_wrong_bodies(body: Any, content_type: str, status: int, words: str) -> None:
    got, content = send(http_api_event("POST", "/translate", body, content_type))

    assert got == status
    assert words in content["error"]


def test_a_body_that_is_not_base64_although_marked() -> None:
    event = {**http_api_event("POST", "/translate", "%%%"), "isBase64Encoded": True}

    status, content = send(event)

    assert status == 400
    assert "base64" in content["error"]


def test_unknown_paths_and_methods() -> None:
    assert send(http_api_event("GET", "/nowhere"))[0] == 404
    response = handler(http_api_event("GET", "/translate"), None)
    assert response["statusCode"] == 405
    assert response["headers"]["Allow"] == "POST, OPTIONS"


def test_too_much_text_is_413(service: pytest.MonkeyPatch) -> None:
    service.setenv("MARIAN_MAX_CHARACTERS", "100")
    service.setenv("MARIAN_MAX_TEXTS", "3")

    assert send(http_api_event("POST", "/translate", {**FIELDS, "q": "a " * 50}))[0] == 200
    status, content = send(http_api_event("POST", "/translate", {**FIELDS, "q": ["a" * 50, "b" * 51]}))
    assert (status, content["error"]) == (413, "q holds 101 characters, a request may hold 100: send it in parts")
    status, content = send(http_api_event("POST", "/translate", {**FIELDS, "q": ["a"] * 4}))
    assert (status, content["error"]) == (413, "q holds 4 texts, a request may hold 3: send fewer")


@pytest.mark.parametrize("event", [{}, {"version": "2.0"}, [], None, {"httpMethod": 1, "path": "/"}, {"Records": []}])
def test_events_of_no_known_shape_are_400(event: Any) -> None:
    status, content = send(event)

    assert status == 400
    assert "no API Gateway or function URL request" in content["error"]


@pytest.mark.parametrize(("name", "value"), [("MARIAN_PACK", "/nowhere"), ("MARIAN_THREADS", "many")])
def test_a_faulty_set_up_is_500_and_the_log_has_the_reason(
    service: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    service.setenv(name, value)

    status, content = send(http_api_event("POST", "/translate", FIELDS))

    assert status == 500
    assert value not in content["error"]
    assert value in caplog.text


def test_a_failure_inside_is_500_without_a_stack_trace(
    service: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret of the inside")

    service.setattr("function.engine.translator.Translator.translate", fail)

    status, content = send(http_api_event("POST", "/translate", FIELDS))

    assert status == 500
    assert "secret" not in content["error"]
    assert "a secret of the inside" in caplog.text
    assert TEXT not in caplog.text
