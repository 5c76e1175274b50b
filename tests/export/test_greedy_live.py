"""The graphs against transformers, recomputed here and now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file
from transformers import MarianMTModel, MarianTokenizer

from function.engine.greedy import GreedySearch
from function.engine.pack import ModelPack
from function.engine.sessions import open_decoder, open_encoder
from model_pack.build import build_pack
from model_pack.checkpoint import read_checkpoint
from model_pack.tokenizer import target_rows
from tests.checkpoints import write_checkpoint
from tests.export.references import greedy_ids
from tests.paths import REFERENCES, STARTER, reference_sentences

BATCH_SIZES = (1, 2, 5, 16, 32)


def greedy_ids_of_pack(checkpoint: Path, pack_path: Path, batch: list[list[int]]) -> list[list[int]]:
    """Target ids by the engine, as ids of the checkpoint."""
    pack = ModelPack.open(pack_path)
    vocabulary = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
    pieces = (pack_path / "target_vocabulary.txt").read_text("utf-8").split("\n")
    search = GreedySearch(pack, open_encoder(pack, threads=2), open_decoder(pack, threads=2))
    return [[vocabulary[pieces[id_]] for id_ in hypothesis.token_ids] for hypothesis in search(batch)]


def test_starter_ids_equal_transformers_and_the_stored_references(fp32_pack: Path) -> None:
    tokenizer = MarianTokenizer.from_pretrained(STARTER)
    model = MarianMTModel.from_pretrained(STARTER).eval()
    sources = [tokenizer(text).input_ids for text in reference_sentences().values()]

    expected = [greedy_ids(model, source_ids) for source_ids in sources]

    stored = json.loads((REFERENCES / "greedy.json").read_text())["sentences"]
    assert [sentence["target_ids"] for sentence in stored] == expected, "run `make references`"
    for size in BATCH_SIZES:
        batches = [sources[start : start + size] for start in range(0, len(sources), size)]
        assert [ids for batch in batches for ids in greedy_ids_of_pack(STARTER, fp32_pack, batch)] == expected


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation_function": "relu"},
        {"activation_function": "gelu"},
        {"scale_embedding": False},
        {"encoder_layers": 3, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 8},
        {"max_length": 7},
        {"forced_eos_token_id": None},
        {
            "eos_token_id": 5,
            "forced_eos_token_id": 5,
            "decoder_start_token_id": 9,
            "bad_words_ids": [[13343], [7], [24]],
        },
    ],
    ids=str,
)
def test_networks_of_other_shapes_and_settings(tmp_path: Path, changes: dict[str, Any]) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", STARTER, **changes)
    restrict_to_target_side(checkpoint)
    build_pack(checkpoint, tmp_path / "pack", None, say=lambda _: None)
    model = MarianMTModel.from_pretrained(checkpoint).eval()
    eos = model.config.eos_token_id
    sources = [[(7 * row + 11 * column) % 13000 + 2 for column in range(row % 12 + 1)] + [eos] for row in range(24)]

    expected = [greedy_ids(model, source_ids) for source_ids in sources]

    assert len(set(map(tuple, expected))) > 12, "the random network says the same to everything"
    assert greedy_ids_of_pack(checkpoint, tmp_path / "pack", sources) == expected


def restrict_to_target_side(checkpoint: Path) -> None:
    """Give every row that the pack's output head leaves out a bias that keeps transformers from choosing it."""
    read = read_checkpoint(checkpoint)
    kept = list(target_rows(read))
    weights = load_file(checkpoint / "model.safetensors")
    bias = weights["final_logits_bias"] - 1000
    bias[0, kept] += 1000
    save_file({**weights, "final_logits_bias": bias}, checkpoint / "model.safetensors")
