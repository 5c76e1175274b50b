"""HTTP requests whose every answer is of interest, errors included."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    content: Any  # decoded JSON; None for no body
    seconds: float


def send(
    url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, method: str | None = None
) -> Answer:
    """Send a request: POST with a body, GET without, unless a method is given.

    Raises:
        OSError: there is no answer.
        ValueError: the answer is no JSON.
    """
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)
    started = time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # nosec B310
            status, received, content = response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        status, received, content = error.code, error.headers, error.read()
    seconds = time.monotonic() - started
    names = {name.lower(): value for name, value in received.items()}
    return Answer(status, names, json.loads(content) if content else None, seconds)


def send_json(url: str, fields: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """POST fields as JSON.

    Raises:
        OSError, ValueError: as for `send`.
    """
    return send(url, json.dumps(fields).encode(), {"Content-Type": "application/json", **(headers or {})})
