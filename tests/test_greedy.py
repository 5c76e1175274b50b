"""Greedy search gives the ids that transformers gives."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from function.engine.greedy import GreedySearch
from function.engine.pack import ModelPack
from function.engine.sessions import open_decoder, open_encoder
from tests.paths import REFERENCES, STARTER, sha256

REFERENCE = json.loads((REFERENCES / "greedy.json").read_text())
SENTENCES = REFERENCE["sentences"]


@pytest.fixture(scope="module")
def search(fp32_pack: Path) -> GreedySearch:
    return search_with(ModelPack.open(fp32_pack))


def search_with(pack: ModelPack) -> GreedySearch:
    return GreedySearch(pack, open_encoder(pack, threads=2), open_decoder(pack, threads=2))


@pytest.fixture(scope="module")
def checkpoint_ids(fp32_pack: Path) -> list[int]:
    """The checkpoint's id of each target id."""
    vocabulary = json.loads((STARTER / "vocab.json").read_text("utf-8"))
    return [vocabulary[piece] for piece in (fp32_pack / "target_vocabulary.txt").read_text("utf-8").split("\n")]


def test_references_belong_to_this_checkpoint() -> None:
    recorded = REFERENCE["provenance"]["checkpoint"]["model.safetensors"]
    assert recorded == sha256(STARTER / "model.safetensors"), "run `make references`"


@pytest.mark.parametrize("batch_size", [1, 2, 3, 8, 32])
def test_fp32_ids_equal_transformers(search: GreedySearch, checkpoint_ids: list[int], batch_size: int) -> None:
    differing = []
    for start in range(0, len(SENTENCES), batch_size):
        batch = SENTENCES[start : start + batch_size]
        for sentence, hypothesis in zip(batch, search([s["source_ids"] for s in batch]), strict=True):
            if [checkpoint_ids[id_] for id_ in hypothesis.token_ids] != sentence["target_ids"]:
                differing.append(sentence["id"])
    assert len(SENTENCES) == 200
    assert differing == []


def test_last_position_takes_the_forced_eos(fp32_pack: Path, search: GreedySearch) -> None:
    pack = ModelPack.open(fp32_pack)
    short = dataclasses.replace(pack, generation=dataclasses.replace(pack.generation, max_length=4))
    batch = [sentence["source_ids"] for sentence in SENTENCES[:8]]

    cut = search_with(short)(batch)

    whole = search(batch)
    for short_hypothesis, hypothesis in zip(cut, whole, strict=True):
        assert len(hypothesis.token_ids) > 3
        assert short_hypothesis.token_ids == [*hypothesis.token_ids[:2], pack.generation.eos_token_id]


def test_banned_tokens_are_never_chosen(fp32_pack: Path, search: GreedySearch) -> None:
    pack = ModelPack.open(fp32_pack)
    batch = [SENTENCES[0]["source_ids"]]
    favourite = search(batch)[0].token_ids[0]
    banned = (*pack.generation.banned_token_ids, favourite)
    stricter = dataclasses.replace(pack, generation=dataclasses.replace(pack.generation, banned_token_ids=banned))

    (hypothesis,) = search_with(stricter)(batch)

    assert favourite not in hypothesis.token_ids
    assert len(hypothesis.token_ids) > 1


def test_score_is_the_mean_log_probability_of_the_chosen_tokens(fp32_pack: Path, search: GreedySearch) -> None:
    pack = ModelPack.open(fp32_pack)
    source_ids = SENTENCES[0]["source_ids"]
    (hypothesis,) = search([source_ids])

    # Teacher forcing, one step at a time, in float64; past and present each in memory of their own.
    encoder, decoder = open_encoder(pack, threads=1), open_decoder(pack, threads=1)
    mask = np.ones((1, len(source_ids)), np.int32)
    cross_names = [name for name in pack.encoder.outputs if name.startswith("cross_attention.")]
    cross = encoder.run(cross_names, {"input_ids": np.array([source_ids]), "attention_mask": mask})
    caches = [name for name in pack.decoder.inputs if name.startswith("past_key_values.")]
    places = len(hypothesis.token_ids)
    shape = (1, pack.network.decoder_attention_heads, places, pack.network.head_size)
    past = [np.zeros(shape, np.float32)] * len(caches)
    log_probabilities = []
    previous = pack.generation.decoder_start_token_id
    for position, token_id in enumerate(hypothesis.token_ids):
        feeds = {
            "input_ids": np.array([[previous]]),
            "position": np.array([position]),
            "past_mask": np.array([[1] * (position + 1) + [0] * (places - position - 1)], np.int32),
            "attention_mask": mask,
            **dict(zip(cross_names, cross, strict=True)),
            **dict(zip(caches, past, strict=True)),
        }
        outputs = dict(zip(pack.decoder.outputs, decoder.run(pack.decoder.outputs, feeds), strict=True))
        past = [outputs[name.replace("past_key_values", "present")] for name in caches]
        logits = outputs["logits.0"][0, 0].astype(np.float64)
        log_probabilities.append(logits[token_id] - np.log(np.exp(logits).sum()))
        previous = token_id

    assert hypothesis.score == pytest.approx(np.mean(log_probabilities), abs=1e-5)
