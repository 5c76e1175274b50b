"""Bulk translation: the records of an SQS event, translated together."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from function.service.errors import RequestError
from function.service.translation import Answer, TranslationRequest, answer, read_request

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """One record: the request in its body, and the id that its sender knows it by."""

    message_id: str
    id: str
    request: TranslationRequest


@dataclass(frozen=True)
class BatchResult:
    """What became of a batch: an answer with its `id` for each finished job, and the messages to try again."""

    results: list[Answer]
    failed_message_ids: list[str]


def translate_records(records: Sequence[dict[str, Any]]) -> BatchResult:
    """Translate every record that can be; one that cannot is reported and harms no other.

    Raises:
        PackError, SettingsError: nothing can be translated; SQS then keeps the whole batch.
    """
    results: list[Answer] = []
    failed: list[str] = []
    jobs: list[Job] = []
    for record in records:
        try:
            jobs.append(_read_job(record))
        except RequestError as error:
            failed.append(_report(record["messageId"], error))
    for job, outcome in zip(jobs, answer([job.request for job in jobs]), strict=True):
        if isinstance(outcome, RequestError):
            failed.append(_report(job.message_id, outcome))
        else:
            results.append({"id": job.id, **outcome})
    return BatchResult(results, failed)


def _read_job(record: dict[str, Any]) -> Job:
    try:
        fields = json.loads(record["body"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise RequestError(400, f"Invalid record: the body is not valid JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RequestError(400, "Invalid record: the body must be a JSON object with id, q, source and target")
    id_ = fields.get("id")
    if not isinstance(id_, str) or not id_ or not id_.isprintable():
        raise RequestError(400, "Invalid record: id must be a string of printable characters that names the result")
    return Job(record["messageId"], id_, read_request(fields))


def _report(message_id: str, error: RequestError) -> str:
    _LOGGER.error("record %s: %s", message_id, error.message)
    return message_id
