"""INT8 packs, with every choice that `quantize` leaves open."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from function.engine.greedy import GreedySearch
from function.engine.model import Model
from function.engine.pack import MANIFEST, ModelPack
from function.engine.sessions import open_decoder, open_encoder
from function.engine.tokenizer import Tokenizer
from model_pack.quantization import Quantization, quantize_matrix
from tests.paths import ROOT, STARTER, held_out

SENTENCES = [row["en"] for row in held_out("dev")[:24]]


def quantize(out: Path, *arguments: str) -> ModelPack:
    command = [sys.executable, "-m", "model_pack", "quantize", "--checkpoint", str(STARTER), "--out", str(out)]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ModelPack.open(out)


def translations(pack: ModelPack) -> list[str]:
    """Each sentence translated alone."""
    model = Model(pack, threads=2)
    return [draft.text for sentence in SENTENCES for draft in model.decode([sentence])]


def similarity(some: list[str], others: list[str]) -> float:
    return float(np.mean([a == b for a, b in zip(some, others, strict=True)]))


def operators(pack: ModelPack, graph: str = "decoder.onnx") -> dict[str, int]:
    nodes = onnx.load(pack.path / graph, load_external_data=False).graph.node
    kinds = [node.op_type for node in nodes]
    return {kind: kinds.count(kind) for kind in set(kinds)}


@pytest.fixture(scope="module")
def fp32(fp32_pack: Path) -> list[str]:
    return translations(ModelPack.open(fp32_pack))


@pytest.mark.parametrize(
    ("arguments", "described"),
    [
        ([], {"weights": "int8", "per_channel": True, "activations": "per-token"}),
        (["--activations", "two-part"], {"activations": "two-part"}),
        (["--activations", "per-tensor"], {"activations": "per-tensor"}),
        (["--weights", "uint8"], {"weights": "uint8"}),
        (["--per-tensor"], {"per_channel": False}),
        (["--per-tensor", "--weights", "uint8"], {"per_channel": False, "weights": "uint8"}),
        (["--reduce-range"], {"reduce_range": True}),
        (["--exclude", "*.fc2", "--exclude", "output_head"], {"excluded": ["*.fc2", "output_head"]}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_choice_translates_like_fp32(
    tmp_path: Path, fp32: list[str], arguments: list[str], described: dict[str, Any]
) -> None:
    pack = quantize(tmp_path / "pack", *arguments)

    recorded = json.loads((pack.path / MANIFEST).read_text("utf-8"))["quantization"]
    assert recorded | described == recorded
    assert pack.precision == "int8"
    assert similarity(translations(pack), fp32) > 0.6


def test_signed_and_unsigned_weights_say_the_same(tmp_path: Path, int8_pack: Path) -> None:
    unsigned = quantize(tmp_path / "pack", "--weights", "uint8")

    assert translations(unsigned) == translations(ModelPack.open(int8_pack))


def test_excluded_layers_stay_float32(tmp_path: Path, int8_pack: Path) -> None:
    whole = operators(ModelPack.open(int8_pack))

    partly = operators(quantize(tmp_path / "pack", "--exclude", "model.decoder.layers.*.fc?"))

    assert partly["MatMul"] == whole["MatMul"] + 2 * 2  # fc1 and fc2 of two layers
    assert partly["MatMulIntegerToFloat"] == whole["MatMulIntegerToFloat"] - 4


def test_static_scales_come_from_the_calibration_text(tmp_path: Path, fp32: list[str]) -> None:
    calibration = tmp_path / "calibration.txt"
    calibration.write_text("\n".join(row["en"] for row in held_out("dev")[100:200]), "utf-8")

    pack = quantize(tmp_path / "pack", "--static", str(calibration))

    assert json.loads((pack.path / MANIFEST).read_text("utf-8"))["quantization"]["activations"] == "static"
    assert "Abs" not in operators(pack)
    assert similarity(translations(pack), fp32) > 0.6


def test_more_activation_bits_come_closer_to_fp32(tmp_path: Path, fp32_pack: Path, int8_pack: Path) -> None:
    """By the scores, which say more of a difference than the texts."""
    finer = quantize(tmp_path / "pack", "--activations", "two-part")

    def scores(pack: ModelPack) -> list[float]:
        search, tokenizer = GreedySearch(pack, open_encoder(pack, 1), open_decoder(pack, 1)), Tokenizer(pack)
        return [search([tokenizer.encode_text(sentence)])[0].score for sentence in SENTENCES]

    exact = np.array(scores(ModelPack.open(fp32_pack)))
    distance, finer_distance = (np.abs(np.array(scores(pack)) - exact) for pack in (ModelPack.open(int8_pack), finer))
    assert np.median(finer_distance) < np.median(distance)


def test_without_calibration_text_there_are_no_static_scales(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    command = [sys.executable, "-m", "model_pack", "quantize", "--checkpoint", str(STARTER), "--out", "x", "--static"]
    done = subprocess.run(
        [*command, str(tmp_path / "empty.txt")], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "is empty" in done.stderr


def test_rows_beyond_the_target_side_change_nothing(tmp_path: Path) -> None:
    cut = quantize(tmp_path / "cut", "--activations", "two-part")

    # (With 8-bit activations the integers of a row in the output head differ from those of one that is only looked up.)
    whole = quantize(tmp_path / "whole", "--activations", "two-part", "--keep-all-rows")

    vocabulary = json.loads((STARTER / "vocab.json").read_text("utf-8"))
    assert len((whole.path / "target_vocabulary.txt").read_text("utf-8").split("\n")) == len(vocabulary)
    assert len((cut.path / "target_vocabulary.txt").read_text("utf-8").split("\n")) < len(vocabulary)
    assert translations(whole) == translations(cut)


@pytest.mark.parametrize("weights", ["int8", "uint8"])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("reduce_range", [True, False])
def test_tables_are_within_half_a_step(weights: Any, per_channel: bool, reduce_range: bool) -> None:
    matrix = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    matrix[:, 3] = 0

    quantized = quantize_matrix(matrix, Quantization(weights, per_channel, reduce_range), is_multiplied=False)

    assert quantized.values.dtype == quantized.zero_points.dtype == weights
    assert (np.abs(quantized.restored() - matrix) <= quantized.scales / 2 * 1.0001).all()
    spread = np.abs(quantized.values.astype(int) - quantized.zero_points.astype(int))
    assert spread.max() == (63 if reduce_range else 127)


@pytest.mark.parametrize("weights", ["int8", "uint8"])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("shape", [(7, 5), (64, 5000)])  # the last of 7 rows has no neighbour; columns beyond one try
def test_neighbours_in_products_fit_16_bits(weights: Any, per_channel: bool, shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    matrix[:, 3] = 0
    matrix[1:3, 4] = 5

    quantized = quantize_matrix(matrix, Quantization(weights, per_channel))

    values = quantized.values.astype(int) - quantized.zero_points.astype(int)
    rows = len(values) // 2 * 2
    assert (255 * np.abs(values[0:rows:2] + values[1:rows:2])).max() < 2**15
    assert np.abs(quantized.restored() - matrix).mean() < 0.02
