"""The output head that an INT8 pack stores as words, and the decoder is given."""

from __future__ import annotations

import gc
import math
import shutil
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from function.engine import sessions
from function.engine.decoding import Decoding
from function.engine.model import Model
from function.engine.output_head import OUTPUT_HEAD_FILE, read_output_head
from function.engine.pack import ModelPack
from function.engine.sessions import open_decoder, open_encoder
from model_pack.checkpoint import read_checkpoint
from model_pack.roads import Batch, PackRoad
from tests.checkpoints import build
from tests.paths import STARTER, held_out
from tests.spm import change_spm

_SENTENCES = [row["en"] for row in held_out("dev")[:8]]
_DROPPED = 3  # pieces of target.spm: the starter's 7,000 target ids fill their words


@pytest.fixture(scope="module")
def unfilled(tmp_path_factory: pytest.TempPathFactory) -> ModelPack:
    """A pack of the starter whose last word has places for more target ids than there are."""
    folder = tmp_path_factory.mktemp("unfilled")
    checkpoint = shutil.copytree(STARTER, folder / "checkpoint", ignore=shutil.ignore_patterns("eval", "recipe"))
    change_spm(checkpoint / "target.spm", lambda proto: proto.pieces.__delitem__(slice(-_DROPPED, None)))
    done = build(checkpoint, folder / "pack")
    assert done.returncode == 0, done.stderr
    return ModelPack.open(folder / "pack")


def test_places_without_a_target_id_are_never_chosen(unfilled: ModelPack) -> None:
    decoding = Decoding(
        unfilled,
        open_encoder(unfilled, 1),
        open_decoder(unfilled, 1),
        np.array([[5, 6, 7]]),
        np.ones((1, 3), np.int32),
    )

    logits = decoding.step([unfilled.generation.decoder_start_token_id])

    (part,) = logits.parts
    assert part.shape == (1, 7000)
    assert (part[0, -_DROPPED:] < -1e8).all()
    assert (part[0, :-_DROPPED] > -1e3).all()
    known = range(7000 - _DROPPED)
    assert sum(math.exp(logits.log_probability(0, id_)) for id_ in known) == pytest.approx(1, abs=1e-5)


def test_places_without_a_target_id_are_no_reason_to_refuse_a_comparison(unfilled: ModelPack) -> None:
    road = PackRoad(read_checkpoint(unfilled.path.parent / "checkpoint"), unfilled.path, threads=1)

    ids = np.array([[5, 6, 0]])
    trace = road.trace(Batch(ids, np.ones((1, 3), np.int32), np.array([[7]])))

    assert trace.logits.shape == (1, 1, 7000 - _DROPPED)


def test_a_pack_with_fewer_target_ids_says_the_same(unfilled: ModelPack, int8_pack: Path) -> None:
    texts = [
        [draft.text for draft in Model(pack, threads=2).decode(_SENTENCES)]
        for pack in (unfilled, ModelPack.open(int8_pack))
    ]

    assert texts[0] == texts[1]


def test_the_head_is_held_no_longer_than_its_product_needs(int8_pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[weakref.ref[NDArray[Any]]] = []

    def read_and_remember(pack: ModelPack) -> dict[str, NDArray[np.int8]]:
        given = read_output_head(pack)
        read.extend(weakref.ref(integers) for integers in given.values())
        return given

    monkeypatch.setattr(sessions, "read_output_head", read_and_remember)
    session = open_decoder(ModelPack.open(int8_pack), 1)
    gc.collect()

    assert session
    assert read
    assert not any(integers() is not None for integers in read), "16 MB of opus-mt-en-zh's size are in memory twice"


def test_a_decoder_that_is_not_given_its_head_says_so(int8_pack: Path) -> None:
    with pytest.raises(Exception, match=r"output_head\.0\.weight"):
        ort.InferenceSession(str(int8_pack / "decoder.onnx"), providers=["CPUExecutionProvider"])


def test_only_signed_integers_share_words(fp32_pack: Path) -> None:
    assert not (fp32_pack / OUTPUT_HEAD_FILE).exists()
    assert read_output_head(ModelPack.open(fp32_pack)) == {}
