"""HTTP as Lambda sees it: events of three kinds to one request, one response back.

Event shapes: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
(payload formats 1.0 and 2.0; function URLs use 2.0).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class EventError(Exception):
    """The event is not an HTTP request of any known shape."""


@dataclass(frozen=True)
class HttpRequest:
    method: str
    path: str  # without stage, without a slash at the end
    content_type: str  # as sent, parameters included; empty when not sent
    body: bytes


@dataclass(frozen=True)
class HttpResponse:
    status: int
    content: Any  # becomes JSON; None for no body
    headers: Mapping[str, str] = field(default_factory=dict)


def read_event(event: Any) -> HttpRequest:
    """Raises: EventError."""
    try:
        if event.get("version") == "2.0":
            method = event["requestContext"]["http"]["method"]
            path = _without_stage(event["rawPath"], event["requestContext"].get("stage"))
        else:
            method, path = event["httpMethod"], event["path"]
        headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        content_type = headers.get("content-type") or ""
        body = event.get("body") or ""
        is_base64 = event.get("isBase64Encoded")
        content = base64.b64decode(body, validate=True) if is_base64 else body.encode("utf-8", "surrogatepass")
        return HttpRequest(method.upper(), path.rstrip("/") or "/", str(content_type), content)
    except (AttributeError, KeyError, TypeError) as error:
        raise EventError(f"the event is no API Gateway or function URL request: {error}") from error
    except (binascii.Error, ValueError) as error:
        raise EventError(f"the body is marked as base64 but is not: {error}") from error


def write_response(response: HttpResponse, cors_origin: str) -> dict[str, Any]:
    """The response in the shape that all three kinds of event accept."""
    headers = {"Access-Control-Allow-Origin": cors_origin, **response.headers}
    body = ""
    if response.content is not None:
        headers["Content-Type"] = "application/json"
        # Half a surrogate pair, which a JSON body may smuggle in, has no UTF-8: it must not reach Lambda's encoder.
        body = json.dumps(response.content, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
    return {"statusCode": response.status, "headers": headers, "body": body, "isBase64Encoded": False}


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(status, {"error": message}, headers or {})


def _without_stage(raw_path: str, stage: str | None) -> str:
    """HTTP APIs put a named stage in front of the path; `$default` leaves no trace."""
    prefix = f"/{stage}"
    return raw_path.removeprefix(prefix) if f"{raw_path}/".startswith(f"{prefix}/") else raw_path
