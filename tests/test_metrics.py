"""What the handlers tell CloudWatch: counts and durations, never a text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from function.http_handler import handler as http_handler
from function.queue_handler import handler as queue_handler
from tests.events import http_api_event, sqs_event

TEXT = "Where is the nearest train station?"
FIELDS = {"q": [TEXT, "-"], "source": "en", "target": "zh"}


@pytest.fixture
def lambda_(service: pytest.MonkeyPatch) -> None:
    service.setenv("AWS_LAMBDA_FUNCTION_NAME", "marian")
    service.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1769")


def metrics(output: str) -> dict[str, Any]:
    """The one line of metrics, checked against the format."""
    (line,) = output.splitlines()
    content: dict[str, Any] = json.loads(line)
    (directive,) = content["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "MarianLambda"
    assert directive["Dimensions"] == [["Function"]]
    assert content["Function"] == "marian"
    for metric in directive["Metrics"]:
        assert isinstance(content[metric["Name"]], int | float)
    return content


@pytest.mark.usefixtures("lambda_")
def test_an_http_request(capsys: pytest.CaptureFixture[str]) -> None:
    http_handler(http_api_event("POST", "/translate", FIELDS), None)

    output = capsys.readouterr().out
    content = metrics(output)
    assert (content["Requests"], content["Failures"], content["Segments"]) == (1, 0, 1)
    assert content["SourceTokens"] > 5
    assert content["TargetTokens"] > 5
    assert (content["Recovered"], content["Suspect"]) == (0, 0)
    assert content["Milliseconds"] > 0
    assert TEXT not in output


@pytest.mark.usefixtures("lambda_")
def test_only_the_first_invocation_is_a_cold_start(
    capsys: pytest.CaptureFixture[str], service: pytest.MonkeyPatch
) -> None:
    service.setattr("function.service.metrics._is_cold", True)
    for expected in (1, 0, 0):
        http_handler(http_api_event("GET", "/health"), None)
        assert metrics(capsys.readouterr().out)["ColdStarts"] == expected


@pytest.mark.usefixtures("lambda_")
def test_a_failure_inside_counts(capsys: pytest.CaptureFixture[str], service: pytest.MonkeyPatch) -> None:
    service.setenv("MARIAN_PACK", "/nowhere")

    http_handler(http_api_event("POST", "/translate", FIELDS), None)

    assert metrics(capsys.readouterr().out)["Failures"] == 1


@pytest.mark.usefixtures("lambda_")
def test_a_batch_of_records(capsys: pytest.CaptureFixture[str]) -> None:
    queue_handler(sqs_event({"job": "j", "id": "a", **FIELDS}, "poison"), None)

    content = metrics(capsys.readouterr().out)
    assert (content["Requests"], content["Failures"], content["Segments"]) == (2, 1, 1)


@pytest.mark.usefixtures("service")
def test_outside_of_lambda_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    http_handler(http_api_event("POST", "/translate", FIELDS), None)

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("asked_for", [True, False])
def test_texts_are_logged_only_when_asked_for(
    service: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, asked_for: bool
) -> None:
    service.setenv("MARIAN_LOG_TEXT", str(asked_for).lower())
    caplog.set_level("DEBUG")

    http_handler(http_api_event("POST", "/translate", FIELDS), None)

    assert (TEXT in caplog.text) is asked_for
