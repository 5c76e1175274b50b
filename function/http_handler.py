"""Entry point for HTTP events: API Gateway REST (v1), HTTP API (v2), function URL."""

from __future__ import annotations

from typing import Any

from function.service.api import respond
from function.service.http_events import EventError, error_response, read_event, write_response


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    try:
        request = read_event(event)
    except EventError as error:
        return write_response(error_response(400, str(error)))
    return write_response(respond(request))
