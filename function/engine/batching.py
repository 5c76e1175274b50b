"""Which sentences are decoded together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

MAX_ROWS = 32  # beyond this a row hardly gets cheaper, and memory grows with every row
MAX_TOKENS = 2048  # padded source tokens: bounds the memory of a batch of long sentences


def batches(lengths: Sequence[int], workers: int = 1) -> Iterator[list[int]]:
    """Group sentences of like length, longest first, so that little of a batch is padding.

    Args:
        lengths: source tokens of each sentence.
        workers: how many batches are decoded side by side; each gets its share.

    Yields:
        Indices into `lengths`, at most MAX_ROWS and MAX_TOKENS (but at least one sentence) a batch.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    share = -(-len(lengths) // workers)
    start = 0
    while start < len(order):
        rows = max(1, min(MAX_ROWS, share, MAX_TOKENS // lengths[order[start]]))
        yield order[start : start + rows]
        start += rows
