"""Metrics, in CloudWatch's embedded format: a line of JSON on standard output, which Lambda hands on.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

NAMESPACE = "MarianLambda"

_counts: Counter[str] = Counter()
_is_cold = True


def count(**counts: int) -> None:
    """Add to the metrics of the invocation that is being measured."""
    _counts.update(counts)


@contextmanager
def measured() -> Iterator[None]:
    """Measure an invocation: what is counted in it, its duration, and whether it was the process's first."""
    global _is_cold  # noqa: PLW0603 (a process has one first invocation)
    _counts.clear()
    count(ColdStarts=int(_is_cold))
    _is_cold = False
    started = time.perf_counter()
    try:
        yield
    finally:
        _write((time.perf_counter() - started) * 1000)


def _write(milliseconds: float) -> None:
    function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
    if function is None:  # not in Lambda: nobody reads this
        return
    metrics = [{"Name": name, "Unit": "Count"} for name in _counts]
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [["Function"]],
        "Metrics": [*metrics, {"Name": "Milliseconds", "Unit": "Milliseconds"}],
    }
    line = {
        "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]},
        "Function": function,
        "Milliseconds": round(milliseconds, 1),
        **_counts,
    }
    print(json.dumps(line), flush=True)
