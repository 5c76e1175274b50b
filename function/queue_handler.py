"""Entry point for SQS events, set up with ReportBatchItemFailures."""

from __future__ import annotations

from typing import Any

from function.service.queue import translate_records


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    batch = translate_records(event["Records"])
    return {
        "batchItemFailures": [{"itemIdentifier": message_id} for message_id in batch.failed_message_ids],
        "results": batch.results,
    }
