"""Which sentences are decoded together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

MAX_ROWS = 16  # beyond this no row gets cheaper: kernels take so many at once, and caches hold no more
MAX_TOKENS = 2048  # padded source tokens: bounds the memory of a batch of long sentences
_LEAST_PART = 0.5  # of the longest sentence's tokens: with shorter ones padding costs more than a batch less saves


def batches(lengths: Sequence[int], workers: int = 1) -> Iterator[list[int]]:
    """Group sentences of like length, longest first: little of a batch is padding, and the last to be begun are short.

    Args:
        lengths: source tokens of each sentence.
        workers: how many batches are decoded side by side; no batch is much more than a worker's share of the tokens.

    Yields:
        Indices into `lengths`, at most MAX_ROWS and MAX_TOKENS (but at least one sentence) a batch.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    share = sum(lengths) / workers
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        end, tokens = start, 0
        for index in order[start : start + max(1, min(MAX_ROWS, MAX_TOKENS // longest))]:
            if tokens >= share or lengths[index] < _LEAST_PART * longest:
                break
            end, tokens = end + 1, tokens + lengths[index]
        yield order[start:end]
        start = end
