"""Entry point for SQS events, set up with ReportBatchItemFailures."""

from __future__ import annotations

from typing import Any

from function.service.loading import begin_loading, settings

begin_loading()

from function.service.clock import out_of_time_check
from function.service.metrics import measured
from function.service.queue import translate_records
from function.service.results import BucketResults, ResponseResults
from function.service.translation import preload

RESERVE_SECONDS = 3.0  # of the invocation's time, to write what is finished

preload()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    with measured():
        bucket = settings().results_bucket
        results = BucketResults(bucket) if bucket else ResponseResults()
        failed = translate_records(event["Records"], results, out_of_time_check(context, RESERVE_SECONDS))
    response: dict[str, Any] = {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
    if isinstance(results, ResponseResults):
        response["results"] = results.collected
    return response
