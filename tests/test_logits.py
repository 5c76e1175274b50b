"""A step's logits, in one part or in several."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from function.engine.decoding import Decoding
from function.engine.logits import Logits
from function.engine.model import Model
from function.engine.pack import ModelPack
from function.engine.sessions import open_decoder, open_encoder
from model_pack.build import build_pack
from model_pack.quantization import Quantization
from tests.paths import STARTER, held_out

_ROWS, _IDS = 3, 70


@pytest.fixture
def whole() -> NDArray[np.float32]:
    return np.random.default_rng(1).normal(size=(_ROWS, _IDS)).astype(np.float32) * 5


@pytest.fixture(params=[70, 64, 32, 1], ids=lambda size: f"parts of {size}")
def logits(whole: NDArray[np.float32], request: pytest.FixtureRequest) -> Logits:
    parts = [whole[:, start : start + request.param].copy() for start in range(0, _IDS, request.param)]
    return Logits(parts, np.stack([np.log(np.exp(part).sum(-1)) for part in parts], -1))


def test_the_best_of_all_parts(logits: Logits, whole: NDArray[np.float32]) -> None:
    assert logits.rows == _ROWS
    assert logits.best() == whole.argmax(-1).tolist()


def test_of_equals_the_lowest(logits: Logits) -> None:
    for token_id in (69, 33, 31):
        number, column = divmod(token_id, logits.parts[0].shape[1])
        logits.parts[number][:, column] = 100

    assert logits.best() == [31] * _ROWS


def test_what_is_forbidden_is_not_the_best(logits: Logits, whole: NDArray[np.float32]) -> None:
    best = whole.argmax(-1).tolist()

    logits.forbid([best[1]], rows=1)
    assert [new == old for new, old in zip(logits.best(), best, strict=True)] == [True, False, True]

    logits.forbid([id_ for id_ in range(_IDS) if id_ != 66])
    assert logits.best() == [66] * _ROWS


def test_log_probabilities_are_among_all_ids_also_forbidden_ones(logits: Logits, whole: NDArray[np.float32]) -> None:
    expected = whole - np.log(np.exp(whole, dtype=np.float64).sum(-1, keepdims=True))
    logits.forbid([5, 40])

    for row in range(_ROWS):
        for token_id in (0, 31, 32, 63, 64, 69):
            assert logits.log_probability(row, token_id) == pytest.approx(expected[row, token_id], abs=1e-5)


@pytest.fixture(scope="module")
def all_rows(tmp_path_factory: pytest.TempPathFactory) -> ModelPack:
    """The starter's INT8 pack with all rows of its vocabulary: its output head has several parts."""
    path = tmp_path_factory.mktemp("all_rows") / "pack"
    build_pack(STARTER, path, Quantization(), lambda _: None, keep_all_rows=True)
    return ModelPack.open(path)


def test_the_parts_are_one_distribution(all_rows: ModelPack) -> None:
    source_ids, mask = np.array([[44, 12, 1093, 0]] * 2), np.ones((2, 4), np.int32)
    decoding = Decoding(all_rows, open_encoder(all_rows, 1), open_decoder(all_rows, 1), source_ids, mask)

    logits = decoding.step([all_rows.generation.decoder_start_token_id] * 2)

    assert len(logits.parts) > 1
    ids = sum(part.shape[1] for part in logits.parts)
    assert math.fsum(math.exp(logits.log_probability(1, id_)) for id_ in range(ids)) == pytest.approx(1, abs=1e-5)


def test_the_same_is_said_with_more_rows_alone_and_together(all_rows: ModelPack, int8_pack: Path) -> None:
    texts = [row["en"] for row in held_out("dev")[:8]]
    model = Model(all_rows, threads=1)

    together = [(draft.text, draft.log_probability) for draft in model.decode(texts)]

    alone = [model.decode([text])[0] for text in texts]
    assert together == [(draft.text, draft.log_probability) for draft in alone]
    of_fewer_rows = Model(ModelPack.open(int8_pack), threads=1).decode(texts)  # a part
    assert [text for text, _ in together] == [draft.text for draft in of_fewer_rows]
