"""A sentence's ids and score are the same, to the bit, alone, in any batch, and with any number of threads."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from function.engine.greedy import GreedySearch, Hypothesis
from function.engine.pack import ModelPack
from function.engine.searches import Searches
from function.engine.sessions import open_decoder, open_encoder
from function.engine.tokenizer import Tokenizer
from tests.paths import held_out

SENTENCES = [row["en"] for name in ("test_tatoeba", "test_docs", "dev") for row in held_out(name)]  # 2,000
EVERY = int(os.environ.get("EVERY_NTH_SENTENCE", "10"))


def open_search(path: Path, threads: int) -> GreedySearch:
    pack = ModelPack.open(path)
    return GreedySearch(pack, open_encoder(pack, threads), open_decoder(pack, threads))


def encode(path: Path, sentences: list[str]) -> list[list[int]]:
    tokenizer = Tokenizer(ModelPack.open(path))
    return [tokenizer.encode_text(sentence) for sentence in sentences]


def differing(some: list[Hypothesis], others: list[Hypothesis]) -> list[int]:
    """Where they do."""
    return [index for index, (a, b) in enumerate(zip(some, others, strict=True)) if a != b]


def random_batches(count: int) -> Iterator[list[int]]:
    """Every index below `count` once, in batches of 1 to 48."""
    generator = random.Random(count)
    indices = list(range(count))
    generator.shuffle(indices)
    while indices:
        rows = generator.randint(1, 48)
        yield indices[:rows]
        indices = indices[rows:]


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_each_sentence_is_the_same_alone_and_in_a_random_batch(precision: str, request: pytest.FixtureRequest) -> None:
    pack = request.getfixturevalue(f"{precision}_pack")
    source_ids = encode(pack, SENTENCES[::EVERY])
    search = open_search(pack, threads=1)
    alone = [search([ids])[0] for ids in source_ids]

    in_batches: dict[int, Hypothesis] = {}
    for batch in random_batches(len(source_ids)):
        in_batches |= dict(zip(batch, search([source_ids[index] for index in batch]), strict=True))

    assert len(in_batches) == len(source_ids) == 2000 // EVERY
    assert differing(alone, [in_batches[index] for index in range(len(alone))]) == []


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_threads_do_not_matter(precision: str, request: pytest.FixtureRequest) -> None:
    pack = request.getfixturevalue(f"{precision}_pack")
    source_ids = encode(pack, SENTENCES[:1000:50])

    results = [open_search(pack, threads)(source_ids) for threads in range(1, 7)]

    assert [differing(results[0], result) for result in results] == [[]] * 6


def test_sharing_out_among_threads_does_not_matter(int8_pack: Path) -> None:
    source_ids = encode(int8_pack, SENTENCES[:1000:20])
    pack = ModelPack.open(int8_pack)

    alone = open_search(int8_pack, threads=1)(source_ids)
    for threads in (1, 2, 3):
        found = Searches(pack, threads)(source_ids, lambda: False)
        assert differing(alone, [hypothesis for hypothesis in found if hypothesis]) == []
