"""Repetition in decoding: seeing it, so that no loop is decoded to its end, and forbidding it on a second attempt."""

from __future__ import annotations

from collections.abc import Sequence

_LOOP_TOKENS = 24  # in two copies: no output of the starter's on 1,025 news and medical lines came out of such a loop
_REPEAT_SIZE = 2  # tokens: with 3, the starter still says a token three times, and that is what the guard finds


def is_looping(target_ids: Sequence[int]) -> bool:
    """Whether decoding goes round in circles, so that its row may be ended before `max_length` ends it.

    Constant time, for use between decoder steps.
    """
    if len(target_ids) < 2 * _LOOP_TOKENS:
        return False
    tail = list(target_ids[-2 * _LOOP_TOKENS :])
    return any(tail[_LOOP_TOKENS:] == tail[_LOOP_TOKENS - period : -period] for period in range(1, _LOOP_TOKENS + 1))


def repeats(target_ids: Sequence[int]) -> list[int]:
    """Every token that would end an n-gram which the row already holds.

    Args:
        target_ids: what the row has chosen so far.
    """
    ids = list(target_ids)
    before = ids[len(ids) - _REPEAT_SIZE + 1 :]
    starts = range(len(ids) - _REPEAT_SIZE + 1)
    return [ids[i + _REPEAT_SIZE - 1] for i in starts if ids[i : i + _REPEAT_SIZE - 1] == before]
