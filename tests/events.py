"""Factories of the events that AWS sends."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

Event = dict[str, Any]


def http_api_event(
    method: str, path: str, body: Any = None, content_type: str | None = "application/json", *, stage: str = "$default"
) -> Event:
    """Payload format 2.0, which function URLs use too. Bytes arrive base64-encoded, everything else as JSON text."""
    event: Event = {
        "version": "2.0",
        "rawPath": path,
        "headers": {"content-type": content_type} if content_type is not None else {},
        "requestContext": {"http": {"method": method}, "stage": stage},
        "isBase64Encoded": isinstance(body, bytes),
    }
    if body is not None:
        event["body"] = _body(body)
    return event


def rest_api_event(method: str, path: str, body: Any = None, content_type: str = "application/json") -> Event:
    """Payload format 1.0."""
    return {
        "httpMethod": method,
        "path": path,
        "headers": {"Content-Type": content_type},
        "requestContext": {"stage": "prod"},
        "body": None if body is None else _body(body),
        "isBase64Encoded": isinstance(body, bytes),
    }


def sqs_event(*bodies: Any) -> Event:
    """A batch of records; text is a body as it is, everything else becomes JSON. Message ids count from 0."""
    records = [
        {"messageId": str(number), "body": body if isinstance(body, str) else json.dumps(body)}
        for number, body in enumerate(bodies)
    ]
    return {"Records": records}


def endless_texts(count: int = 1000) -> list[str]:
    """More text than any processor translates in a few seconds, no sentence of it twice."""
    numbers = itertools.count()
    sentences = (f"The quick brown fox jumps over dog number {number} and runs away from it." for number in numbers)
    return [" ".join(itertools.islice(sentences, 5)) for _ in range(count)]


def _body(body: Any) -> str:
    if isinstance(body, bytes):
        return base64.b64encode(body).decode()
    return body if isinstance(body, str) else json.dumps(body)
