"""Whether a translation keeps what must not change."""

from __future__ import annotations

from function.text.protection import lost
from function.text.spans import find_spans


def spans_survive(source: str, target: str) -> bool:
    return not lost(source, find_spans(source), target)
