"""template.yaml, deployed to an emulated AWS by `sam deploy`, and used as its users would."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.cloud import SMALL, Deployment, bulk, deploy, local_cloud
from local.docker import Engine
from local.web import send, send_json

FIELDS = {"q": "The weather today is quite nice.", "source": "en", "target": "zh"}


@pytest.fixture(scope="module")
def deployment(engine: Engine) -> Iterator[Deployment]:
    with local_cloud(engine) as cloud:
        yield deploy(cloud, SMALL)


def wait_for(look: Callable[[], Any], seconds: float = 60) -> Any:
    """What `look` finds, as soon as it finds something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.3)
    raise AssertionError(f"nothing was found within {seconds} s")


def read_object(deployment: Deployment, key: str) -> Any:
    """Decoded JSON; None where there is no such object."""
    bucket = deployment.outputs["ResultsBucket"]
    s3 = deployment.cloud.client("s3")
    if all(item["Key"] != key for item in s3.list_objects_v2(Bucket=bucket, Prefix=key).get("Contents", [])):
        return None
    return json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())


def send_record(deployment: Deployment, record: dict[str, Any]) -> None:
    queue = deployment.outputs["QueueUrl"]
    deployment.cloud.client("sqs").send_message(QueueUrl=queue, MessageBody=json.dumps(record))


def test_the_api_translates_for_who_has_the_key(deployment: Deployment) -> None:
    answer = deployment.translate(FIELDS)

    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "天气" in answer.content["translatedText"]
    assert send_json(f"{deployment.api_url}/translate", FIELDS).status == 403
    assert send_json(f"{deployment.api_url}/translate", FIELDS, {"x-api-key": "another"}).status == 403


def test_every_route_is_the_functions(deployment: Deployment) -> None:
    assert deployment.get("/health").content["status"] == "ok"
    assert deployment.get("/languages").content[0]["code"] == "en"
    assert "does not exist" in deployment.get("/nowhere").content["error"]
    assert "does not exist" in deployment.get("/").content["error"]
    assert deployment.get("/translate").status == 405


def test_a_bulk_job(deployment: Deployment, tmp_path: Path) -> None:
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    source.write_text("Good morning.\nWhere is the station?\n\nThe weather today is quite nice.\n" * 10, "utf-8")
    job = ("--bucket", deployment.outputs["ResultsBucket"], "--job", "test")
    queue = ("--queue-url", deployment.outputs["QueueUrl"])

    bulk(deployment, "submit", str(source), *queue, *job, "--chunk-segments", "10")
    bulk(deployment, "collect", *job, "--out", str(target), "--wait", "0.5")
    bulk(deployment, "status", *job, *queue)

    lines = target.read_text("utf-8").splitlines()
    assert lines == lines[:4] * 10
    assert [bool(line) for line in lines[:4]] == [True, True, False, True]


def test_a_record_may_name_an_object(deployment: Deployment) -> None:
    place = {"bucket": deployment.outputs["ResultsBucket"], "key": "inputs/large/1.txt"}
    deployment.cloud.client("s3").put_object(Bucket=place["bucket"], Key=place["key"], Body=b"Good morning.\nThanks.\n")

    send_record(deployment, {"job": "large", "id": "1", "s3": place, "source": "en", "target": "zh"})

    result = wait_for(lambda: read_object(deployment, "large/1.json"))
    assert len(result["translatedText"]) == 2


def test_a_hopeless_record_becomes_a_dead_letter_and_says_why(deployment: Deployment) -> None:
    sqs = deployment.cloud.client("sqs")
    queue, dead_letters = deployment.outputs["QueueUrl"], deployment.outputs["DeadLetterQueueUrl"]
    visibility = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["VisibilityTimeout"])["Attributes"]
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "1"})  # half an hour is long for a test
    try:
        send_record(deployment, {"job": "hopeless", "id": "1", "q": "Hello.", "source": "en", "target": "xx"})
        letter = wait_for(lambda: sqs.receive_message(QueueUrl=dead_letters).get("Messages"))[0]
    finally:
        sqs.set_queue_attributes(QueueUrl=queue, Attributes=visibility)

    assert json.loads(letter["Body"])["job"] == "hopeless"
    assert "xx" in read_object(deployment, "hopeless/1.error.json")["error"]
    assert read_object(deployment, "hopeless/1.json") is None


def test_queue_settings(deployment: Deployment) -> None:
    functions = deployment.cloud.client("lambda")
    (mapping,) = functions.list_event_source_mappings()["EventSourceMappings"]
    function = functions.get_function_configuration(FunctionName=mapping["FunctionArn"])
    sqs = deployment.cloud.client("sqs")
    queue = sqs.get_queue_attributes(QueueUrl=deployment.outputs["QueueUrl"], AttributeNames=["All"])["Attributes"]

    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert int(queue["VisibilityTimeout"]) >= 6 * function["Timeout"]
    assert json.loads(queue["RedrivePolicy"])["maxReceiveCount"] == 3


def test_other_parameters_reach_what_is_deployed(deployment: Deployment) -> None:
    changed = deploy(deployment.cloud, {**SMALL, "Auth": "IAM", "ColdStarts": "SnapStart", "LogLevel": "WARN"})

    unsigned = send(f"{changed.api_url}/health")
    request = AWSRequest("GET", f"{changed.api_url}/health")
    SigV4Auth(Credentials("test", "test"), "execute-api", "us-east-1").add_auth(request)
    signed = send(f"{changed.api_url}/health", headers=dict(request.headers))
    functions = changed.cloud.client("lambda")
    name = next(
        each["FunctionName"] for each in functions.list_functions()["Functions"] if "Http" in each["FunctionName"]
    )
    live = functions.get_function_configuration(FunctionName=name, Qualifier="live")

    assert changed.api_key is None
    assert unsigned.status == 403
    assert signed.status == 200
    # The alias has moved to a version that has all of it.
    assert live["SnapStart"]["OptimizationStatus"] == "On"
    assert live["LoggingConfig"]["ApplicationLogLevel"] == "WARN"
    assert live["Environment"]["Variables"]["MARIAN_PRELOAD"] == "true"
