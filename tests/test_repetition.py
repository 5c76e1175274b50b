"""Repetition in decoding: loops are seen, and on a second attempt no two tokens follow each other twice."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from function.engine.repetition import is_looping, repeats


def test_a_search_under_the_ban_never_repeats_two_tokens() -> None:
    chosen: list[int] = []
    liking = np.random.default_rng(1).normal(size=60).astype(np.float32)
    for _ in range(40):
        logits = liking.copy()
        logits[repeats(chosen)] = -np.inf
        chosen.append(int(logits.argmax()))

    pairs = list(pairwise(chosen))
    assert len(set(pairs)) == len(pairs)


def test_only_tokens_that_would_repeat_are_banned() -> None:
    assert repeats([1, 2, 3, 1, 4, 1]) == [2, 4]


@pytest.mark.parametrize("target_ids", [[], [5]])
def test_nothing_is_banned_before_there_is_anything_to_repeat(target_ids: list[int]) -> None:
    assert repeats(target_ids) == []


@pytest.mark.parametrize("period", [1, 2, 7, 24])
def test_a_loop_of_tokens_is_seen_while_it_is_decoded(period: int) -> None:
    beginning, loop = list(range(100, 130)), list(range(period))

    assert is_looping(beginning + loop * 48)
    assert not is_looping(beginning + loop * (24 // period))


def test_tokens_that_come_back_now_and_then_are_no_loop() -> None:
    tokens = random.Random(1).choices(range(20), k=500)

    assert not any(is_looping(tokens[:length]) for length in range(500))
    assert not is_looping([])
