"""What the function loads: every import is paid for at every cold start, and some are not there in Lambda."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.events import http_api_event, sqs_event
from tests.paths import ROOT

FORBIDDEN = {"torch", "transformers", "sentencepiece", "onnx", "boto3", "botocore", "model_pack", "safetensors"}
ALLOWED = {"function", "numpy", "onnxruntime", "sentencex", *sys.stdlib_module_names}

PROGRAM = """
import importlib, json, sys
event = json.loads(sys.argv[2])
before = set(sys.modules)
response = importlib.import_module(sys.argv[1]).handler(event, None)
files = {name: getattr(module, "__file__", None) or "" for name, module in list(sys.modules.items())}
print(json.dumps({"response": response, "loaded": sorted({name.partition(".")[0] for name in set(files) - before})}))
"""
FIELDS = {"q": "Good morning. Where is Dr. Smith?", "source": "en", "target": "zh"}


def test_nothing_is_left_in_the_home_folder(int8_pack: Path, tmp_path: Path) -> None:
    event = json.dumps(http_api_event("POST", "/translate", FIELDS))
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, "function.http_handler", event],
        cwd=ROOT,
        env={**environment, "MARIAN_PACK": str(int8_pack), "HOME": str(tmp_path)},
        check=True,
        stdout=subprocess.DEVNULL,
    )

    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("module", "event"),
    [
        ("function.http_handler", http_api_event("POST", "/translate", FIELDS)),
        ("function.queue_handler", sqs_event({"job": "j", "id": "a", **FIELDS})),
    ],
)
def test_a_handler_that_has_translated_has_loaded_only_what_lambda_has(
    int8_pack: Path, module: str, event: dict[str, object]
) -> None:
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM, module, json.dumps(event)],
        cwd=ROOT,
        env={**os.environ, "MARIAN_PACK": str(int8_pack)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    result = json.loads(output)
    loaded = set(result["loaded"])
    assert "translatedText" in json.dumps(result["response"])
    assert {"onnxruntime", "numpy"} <= loaded
    assert not loaded & FORBIDDEN
    assert {name for name in loaded if not name.startswith("_")} <= ALLOWED
