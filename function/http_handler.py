"""Entry point for HTTP events: API Gateway REST (v1), HTTP API (v2), function URL."""

from __future__ import annotations

from typing import Any

from function.service.loading import begin_loading

begin_loading()

from function.service.api import cors_origin, respond
from function.service.clock import out_of_time_check
from function.service.http_events import EventError, error_response, read_event, write_response
from function.service.metrics import measured
from function.service.translation import preload

RESERVE_SECONDS = 0.5  # of the invocation's time, to say that it was not enough

preload()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    with measured():
        try:
            response = respond(read_event(event), out_of_time_check(context, RESERVE_SECONDS))
        except EventError as error:
            response = error_response(400, str(error))
        return write_response(response, cors_origin())
