"""LibreTranslate's API: routes, bodies, errors (https://docs.libretranslate.com)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from function import __version__
from function.engine.pack import Language, PackError
from function.service.errors import RequestError
from function.service.http_events import HttpRequest, HttpResponse, error_response
from function.service.loading import confirmed_pack, pack, settings
from function.service.metrics import count
from function.service.settings import SettingsError
from function.service.translation import answer, read_request

_LOGGER = logging.getLogger(__name__)


def respond(request: HttpRequest, is_out_of_time: Callable[[], bool] = lambda: False) -> HttpResponse:
    """Answer any request; what goes wrong becomes `{"error": ...}` with a status, never an exception.

    Args:
        is_out_of_time: asked at every decoder step; the request is given up when it says so.
    """
    response = _respond(request, is_out_of_time)
    count(Requests=1, Failures=int(response.status >= 500))
    return response


def cors_origin() -> str:
    """The origin that browsers may call from."""
    try:
        return settings().cors_origin
    except SettingsError:  # the answer is an error anyway; browsers may as well read it
        return "*"


def _respond(request: HttpRequest, is_out_of_time: Callable[[], bool]) -> HttpResponse:
    methods = _ROUTES.get(request.path)
    if methods is None:
        return error_response(404, f"{request.path} does not exist; there are {', '.join(_ROUTES)}")
    allowed = ", ".join([*methods, "OPTIONS"])
    if request.method == "OPTIONS":
        return HttpResponse(204, None, {"Access-Control-Allow-Methods": allowed, "Access-Control-Allow-Headers": "*"})
    if request.method not in methods:
        return error_response(405, f"{request.path} does not take {request.method}, only {allowed}", {"Allow": allowed})
    try:
        return methods[request.method](request, is_out_of_time)
    except RequestError as error:
        return error_response(error.status, error.message)
    except (PackError, SettingsError) as error:
        _LOGGER.error("%s", error)
        return error_response(500, "The service is not set up correctly; its log has the reason.")
    except Exception:
        _LOGGER.exception("%s %s failed", request.method, request.path)
        return error_response(500, "The service failed on this request; its log has the reason.")


def _translate(request: HttpRequest, is_out_of_time: Callable[[], bool]) -> HttpResponse:
    (result,) = answer([read_request(_fields(request))], is_out_of_time)
    if isinstance(result, RequestError):
        raise result
    return HttpResponse(200, result)


def _languages(*_: object) -> HttpResponse:
    source, targets = pack().source, pack().targets
    entries = [_entry(source, [language.code for language in targets]), *(_entry(language, []) for language in targets)]
    return HttpResponse(200, entries)


def _entry(language: Language, targets: list[str]) -> dict[str, Any]:
    return {"code": language.code, "name": language.name, "targets": targets}


def _health(*_: object) -> HttpResponse:
    pack = confirmed_pack()
    return HttpResponse(200, {"status": "ok", "pack": f"{pack.model_id} {pack.precision}", "version": __version__})


_ROUTES: dict[str, dict[str, Callable[[HttpRequest, Callable[[], bool]], HttpResponse]]] = {
    "/translate": {"POST": _translate},
    "/languages": {"GET": _languages},
    "/health": {"GET": _health},
}


def _fields(request: HttpRequest) -> dict[str, Any]:
    """The fields of a JSON, form or multipart body.

    Raises:
        RequestError: 415 for another kind of body, 400 for one that is not what it says.
    """
    kind = request.content_type.split(";")[0].strip().lower() or "application/json"
    try:
        if kind.endswith(("/json", "+json")) or kind.startswith("application/x-amz-json"):
            fields = json.loads(request.body.decode("utf-8"))
        elif kind == "application/x-www-form-urlencoded":
            parsed = parse_qs(request.body.decode("utf-8"), keep_blank_values=True, errors="strict")
            fields = {name: values[0] if len(values) == 1 else values for name, values in parsed.items()}
        elif kind == "multipart/form-data":
            from function.service.multipart import multipart_fields  # noqa: PLC0415 (15 ms that few requests need)

            fields = multipart_fields(request.content_type, request.body)
        else:
            raise RequestError(415, f"{kind} is not supported; send application/json or a form")
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"Invalid request: the body is not valid {kind}: {error}") from error
    if not isinstance(fields, dict):
        raise RequestError(400, "Invalid request: the body must be a JSON object with q, source and target")
    return fields
