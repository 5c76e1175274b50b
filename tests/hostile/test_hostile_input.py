"""Malformed events and records by the thousand: only documented statuses, no crash, no hang, no growth.

`make test-hostile` tries 20,000 of each kind; HOSTILE_EXAMPLES in the environment says otherwise.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from function.http_handler import handler as http_handler
from function.queue_handler import handler as queue_handler
from tests.fresh import forget_service

EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", "20000"))
STATUSES = {200, 204, 400, 404, 405, 413, 415}

pytestmark = pytest.mark.usefixtures("loaded_service")


@pytest.fixture(scope="module")
def loaded_service(int8_pack: Path) -> Iterator[None]:
    """The service with limits that keep a single example quick."""
    values = {"MARIAN_PACK": str(int8_pack), "MARIAN_MAX_CHARACTERS": "200", "MARIAN_MAX_TEXTS": "8"}
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    forget_service()
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    forget_service()


text = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["Good morning.", "</s>", ">>cmn_Hans<<", "<unk>", "\ud800", "\0", "\u2581", "a" * 300, "\u0301\u0301", "......"]
)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "q": text | st.lists(text, max_size=4) | json_value,
        "source": st.sampled_from(["en", "auto", "zz"]) | json_value,
        "target": st.sampled_from(["zh", "zh-Hans", "fr"]) | json_value,
        "format": st.sampled_from(["text", "html"]) | json_value,
        "alternatives": json_value,
        "details": json_value,
        "job": st.sampled_from(["job", "../up"]) | json_value,
        "id": st.sampled_from(["id", "a/b"]) | json_value,
        "s3": st.none() | st.fixed_dictionaries({}, optional={"bucket": st.none(), "range": json_value}),
    },
)
content_type = st.none() | st.sampled_from(
    [
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "text/plain",
        "application/json; charset=utf-16",
    ]
) | text  # fmt: skip


def encoded(value: Any) -> str:
    return json.dumps(value)


body = (
    fields.map(encoded)
    | json_value.map(encoded)
    | text
    | st.binary(max_size=60).map(lambda raw: base64.b64encode(raw).decode())
    | st.just("--x\r\nContent-Disposition: form-data; name=q\r\n\r\nGood morning.\r\n--x--")
)
path = st.sampled_from(["/translate", "/translate/", "/prod/translate", "/languages", "/health", "/", ""]) | text
method = st.sampled_from(["GET", "POST", "OPTIONS", "PUT", "post"]) | text
headers = st.none() | st.fixed_dictionaries({}, optional={"Content-Type": content_type, "x": json_value})
version_1 = st.fixed_dictionaries(
    {"httpMethod": method, "path": path},
    optional={"headers": headers, "body": body | json_value, "isBase64Encoded": st.booleans() | json_value},
)
version_2 = st.fixed_dictionaries(
    {"version": st.just("2.0"), "rawPath": path},
    optional={
        "requestContext": st.fixed_dictionaries({"http": st.fixed_dictionaries({"method": method})}) | json_value,
        "headers": headers,
        "body": body | json_value,
        "isBase64Encoded": st.booleans() | json_value,
    },
)
hostile = settings(
    max_examples=EXAMPLES,
    deadline=timedelta(seconds=10),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    database=None,
)


@hostile
@given(version_1 | version_2 | json_value)
def test_http_events(event: Any) -> None:
    response = http_handler(event, None)

    assert response["statusCode"] in STATUSES, response
    response["body"].encode("utf-8")
    if response["statusCode"] >= 400:
        assert json.loads(response["body"])["error"]


@hostile
@given(st.lists(body | fields.map(encoded), min_size=1, max_size=4))
def test_queue_records(bodies: list[str]) -> None:
    records = [{"messageId": str(number), "body": body} for number, body in enumerate(bodies)]
    good = {"messageId": "good", "body": json.dumps({"job": "j", "id": "g", "q": "-", "source": "en", "target": "zh"})}

    response = queue_handler({"Records": [*records, good]}, None)

    failed = {failure["itemIdentifier"] for failure in response["batchItemFailures"]}
    assert "good" not in failed
    assert len(failed) + len(response["results"]) == len(records) + 1
    json.dumps(response, ensure_ascii=False).encode("utf-8")
