"""Bulk translation: the records of a queue, translated together, their results written once."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from function.engine.pack import PackError
from function.service.errors import RequestError, TimeIsUp
from function.service.metrics import count
from function.service.results import Job, Results, read_texts
from function.service.settings import SettingsError
from function.service.translation import Answer, TranslationRequest, answer, read_request

_LOGGER = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # of jobs and ids: they become keys of objects
_WINDOW_TEXTS = 256  # translated together: enough to batch by length, few enough to hand in often


@dataclass(frozen=True)
class _Task:
    job: Job
    request: TranslationRequest


def translate_records(
    records: Sequence[dict[str, Any]], results: Results, is_out_of_time: Callable[[], bool] = lambda: False
) -> list[str]:
    """Translate every record that can be, and write what comes out; one that cannot harms no other.

    Args:
        records: as SQS events hold them: `messageId`, `body`, and `attributes` with the receive count.
        results: where results go.
        is_out_of_time: when it says so, what is finished is written and the rest is reported.

    Returns:
        The ids of the messages to try again: those not finished, and those that can never be, which their
        queue gives up after a while.

    Raises:
        PackError, SettingsError: nothing can be translated; the whole batch must be kept.
    """
    failed: list[str] = []
    tasks: list[_Task] = []
    for record in records:
        message_id = record["messageId"]
        job = None
        try:
            fields = _read_fields(record)
            job = _read_job(message_id, fields)
            if _receive_count(record) > 1 and results.has(job):
                continue  # done, but not deleted in time
            tasks.append(_Task(job, _read_task(fields)))
        except RequestError as error:
            failed.append(_refuse(message_id, job, error, results))
        except (PackError, SettingsError):
            raise
        except Exception:  # storage out of order, say: another time it may work
            _LOGGER.exception("record %s was not read", message_id)
            failed.append(message_id)

    for window in _windows(tasks):
        if is_out_of_time():
            failed += [task.job.message_id for task in window]
            continue
        outcomes = answer([task.request for task in window], is_out_of_time)
        for task, outcome in zip(window, outcomes, strict=True):
            if not _hand_in(task.job, outcome, results):
                failed.append(task.job.message_id)
    count(Requests=len(records), Failures=len(failed))
    return failed


def _hand_in(job: Job, outcome: Answer | RequestError, results: Results) -> bool:
    """Write a job's result; whether its message is done with."""
    if isinstance(outcome, TimeIsUp):
        return False
    if isinstance(outcome, RequestError):
        _refuse(job.message_id, job, outcome, results)
        return False
    try:
        results.write(job, {"job": job.job, "id": job.id, **outcome})
    except Exception:
        _LOGGER.exception("the result of record %s was not written", job.message_id)
        return False
    return True


def _windows(tasks: Sequence[_Task]) -> Iterator[list[_Task]]:
    """Tasks in their order, so many at a time that results are written as the work goes on."""
    window: list[_Task] = []
    texts = 0
    for task in tasks:
        if window and texts + len(task.request.texts) > _WINDOW_TEXTS:
            yield window
            window, texts = [], 0
        window.append(task)
        texts += len(task.request.texts)
    if window:
        yield window


def _read_fields(record: dict[str, Any]) -> dict[str, Any]:
    try:
        fields = json.loads(record["body"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise RequestError(400, f"Invalid record: the body is not valid JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RequestError(400, "Invalid record: the body must be a JSON object with job, id, q, source and target")
    return fields


def _read_job(message_id: str, fields: dict[str, Any]) -> Job:
    for name in ("job", "id"):
        value = fields.get(name)
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise RequestError(
                400, f"Invalid record: {name} must be 1 to 128 letters, digits, '.', '_' or '-' that name the result"
            )
    return Job(message_id, fields["job"], fields["id"])


def _read_task(fields: dict[str, Any]) -> TranslationRequest:
    if fields.get("s3") is None:
        return read_request(fields)
    if fields.get("q") is not None:
        raise RequestError(400, "Invalid record: give q or s3, not both")
    place = fields["s3"]
    try:
        bucket, key, byte_range = str(place["bucket"]), str(place["key"]), place.get("range")
        if byte_range is not None:
            first, last = map(int, byte_range)
            byte_range = (first, last)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise RequestError(
            400, "Invalid record: s3 must be an object with bucket, key and optionally range, two byte numbers"
        ) from error
    return read_request({**fields, "q": read_texts(bucket, key, byte_range)})


def _receive_count(record: dict[str, Any]) -> int:
    return int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))


def _refuse(message_id: str, job: Job | None, error: RequestError, results: Results) -> str:
    """Say why a record can never be translated, where its sender looks for the result."""
    _LOGGER.error("record %s: %s", message_id, error.message)
    if job is not None:
        try:
            results.write_error(job, error.message)
        except Exception:
            _LOGGER.exception("the error of record %s was not written", message_id)
    return message_id
