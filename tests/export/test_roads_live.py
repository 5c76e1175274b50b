"""Every road beside transformers: the steps export, verify, baseline and pack, as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from torch import nn

from function.engine.pack import ModelPack
from model_pack.errors import ModelPackError
from model_pack.torch_export import export
from tests.checkpoints import write_checkpoint
from tests.export.test_greedy_live import restrict_to_target_side
from tests.hub_server import MODEL, hub_server
from tests.paths import ROOT, STARTER, held_out


def step(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "model_pack", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve sentences with references."""
    file = tmp_path_factory.mktemp("data") / "sentences.tsv"
    rows = [f"{row['id']}\t{row['en']}\t{row['zh']}" for row in held_out("dev")[:12]]
    file.write_text("\n".join(["id\ten\tzh", *rows]) + "\n", "utf-8")
    return file


@pytest.mark.parametrize("opset", [14, 17, 20])
def test_torch_exports_agree_with_transformers(tmp_path: Path, data: Path, opset: int) -> None:
    common = ["--checkpoint", str(STARTER)]
    exported = step("export", *common, "--via", "torch", "--opset", str(opset), "--out", str(tmp_path / "torch"))
    assert exported.returncode == 0, exported.stderr

    verified = step("verify", *common, "--pack", f"torch={tmp_path / 'torch'}", "--data", str(data))

    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "12/12  ok" in verified.stdout


@pytest.mark.parametrize("opset", ["13", "21"])
def test_an_opset_that_cannot_be(tmp_path: Path, opset: str) -> None:
    out = tmp_path / "out"
    done = step("export", "--checkpoint", str(STARTER), "--via", "torch", "--opset", opset, "--out", str(out))

    assert done.returncode == 2
    assert f"--opset {opset} is not one of 14 to 20" in done.stderr
    assert not out.exists()


def test_direct_packs_agree_and_int8_is_reported_on(
    tmp_path: Path, fp32_pack: Path, int8_pack: Path, data: Path
) -> None:
    out = tmp_path / "verification.json"
    done = step(
        *("verify", "--checkpoint", str(STARTER), "--pack", f"fp32={fp32_pack}", "--pack", f"int8={int8_pack}"),
        *("--data", str(data), "--out", str(out)),
    )

    assert done.returncode == 0, done.stdout + done.stderr
    fp32, int8 = json.loads(out.read_text("utf-8"))
    assert fp32["passed"]
    assert max(fp32[name] for name in ("encoder_states", "cross_attention", "past", "logits")) < 1e-4
    assert fp32["identical"] == fp32["sentences"] == 12
    assert not int8["exact"]
    assert int8["passed"]
    assert int8["logits"] > 1e-4
    for difference in int8["first_differences"][:1]:
        assert f"int8: {difference['sentence']} differs from step {difference['step']}" in done.stdout


@pytest.mark.parametrize(
    "changes",
    [
        {"share_encoder_decoder_embeddings": False},
        {"tie_word_embeddings": False},
        {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    ],
    ids=str,
)
def test_untied_embeddings_agree(tmp_path: Path, data: Path, changes: dict[str, Any]) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", STARTER, **changes)
    restrict_to_target_side(checkpoint)
    packs = []
    for road in ("direct", "torch"):
        out = tmp_path / road
        assert step("export", "--checkpoint", str(checkpoint), "--via", road, "--out", str(out)).returncode == 0
        packs += ["--pack", f"{road}={out}"]

    done = step("verify", "--checkpoint", str(checkpoint), *packs, "--data", str(data))

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_pack_of_other_weights_fails_and_the_first_step_is_shown(tmp_path: Path, data: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", STARTER)
    pack = tmp_path / "pack"
    assert step("build", "--checkpoint", str(checkpoint), "--precision", "fp32", "--out", str(pack)).returncode == 0
    weights = load_file(checkpoint / "model.safetensors")
    name = "model.decoder.layers.1.encoder_attn.v_proj.weight"
    save_file({**weights, name: -weights[name]}, checkpoint / "model.safetensors")

    done = step("verify", "--checkpoint", str(checkpoint), "--pack", f"old={pack}", "--data", str(data))

    assert done.returncode == 1
    assert "FAILED" in done.stdout
    assert "differs from step" in done.stdout


def test_a_pack_of_another_checkpoint_is_refused(tmp_path: Path, fp32_pack: Path, data: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", STARTER)
    vocabulary = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
    del vocabulary["▁the"], vocabulary["。"]
    (checkpoint / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")

    done = step("verify", "--checkpoint", str(checkpoint), "--pack", f"other={fp32_pack}", "--data", str(data))

    assert done.returncode == 2
    assert "was not built from" in done.stderr


# --- the usual failures of torch.onnx.export -------------------------------------------------------------


class Doubling(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * 2 + y.sum()


class Unsayable(nn.Module):
    """Uses an operator that torch's exporter has no words for."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(x) + y.sum()


NAMES = {"inputs": ["x", "y"], "outputs": ["z"]}
EXAMPLE = (torch.ones(2, 5), torch.ones(2, 3))


def test_a_module_in_training_mode(tmp_path: Path) -> None:
    with pytest.raises(ModelPackError, match=r"training mode.*call \.eval\(\)"):
        export(Doubling().train(), EXAMPLE, NAMES, {}, tmp_path / "x.onnx", 17)


def test_an_axis_with_two_meanings(tmp_path: Path) -> None:
    axes = {"x": {0: "B", 1: "S"}, "y": {0: "B", 1: "S"}}
    with pytest.raises(ModelPackError, match="'S' has two meanings: it is 5 in axis 1 of x and 3 in axis 1 of y"):
        export(Doubling().eval(), EXAMPLE, NAMES, axes, tmp_path / "x.onnx", 17)


def test_an_operator_that_the_opset_lacks(tmp_path: Path) -> None:
    with pytest.raises(ModelPackError, match=r"opset 14 has no way to say .* higher --opset .*bessel_j0"):
        export(Unsayable().eval(), EXAMPLE, NAMES, {}, tmp_path / "x.onnx", 14)


# --- baseline and the whole road --------------------------------------------------------------------------


def test_a_baseline_that_was_broken_off_is_gone_on_with(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "baseline.jsonl"
    arguments = ["baseline", "--checkpoint", str(STARTER), "--data", str(data), "--out", str(out)]
    assert step(*arguments).returncode == 0
    whole = out.read_text("utf-8")
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 13
    first = json.loads(lines[1])
    assert first["greedy_ids"][-1] == 0
    assert first["greedy"]
    assert first["beam"]
    out.write_text("".join(lines[:6]) + lines[6][:20], "utf-8")

    done = step(*arguments)

    assert done.returncode == 0, done.stderr
    assert "5 of 12 sentences" in done.stderr
    assert out.read_text("utf-8") == whole


def spoil(change: Callable[[dict[str, Any]], None], checkpoint: Path) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    change(weights)
    save_file(weights, checkpoint / "model.safetensors")


def test_the_whole_road_makes_a_pack_and_a_report(tmp_path: Path, data: Path) -> None:
    work = tmp_path / "work"
    done = step("pack", "--checkpoint", str(STARTER), "--work", str(work), "--data", str(data))

    assert done.returncode == 0, done.stderr
    assert {path.name for path in work.iterdir()} == {
        *("baseline.jsonl", "evaluation.json", "fp32", "inspection.json", "int8", "report.html", "verification.json"),
    }
    assert ModelPack.open(work / "int8").precision == "int8"
    report = (work / "report.html").read_text("utf-8")
    assert all(row["id"] in report for row in held_out("dev")[:12])


def test_the_whole_road_begins_at_a_hub(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    for file in STARTER.iterdir():
        if file.is_file():
            (repository / file.name).write_bytes(file.read_bytes())
    work = tmp_path / "work"
    with hub_server() as hub:
        hub.commits["1" * 40] = repository
        hub.branches["main"] = "1" * 40
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        done = step("pack", "--model", MODEL, "--work", str(work), "--data", str(data))

    assert done.returncode == 0, done.stderr
    manifest = json.loads((work / "int8" / "manifest.json").read_text("utf-8"))
    assert manifest["model"] == {"id": MODEL, "revision": "1" * 40, "licence": "apache-2.0"}


def test_an_int8_pack_that_quantisation_has_spoilt_is_refused(tmp_path: Path, data: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    for file in STARTER.iterdir():
        if file.is_file():
            (checkpoint / file.name).write_bytes(file.read_bytes())

    def blow_up(weights: dict[str, Any]) -> None:
        # Float32 does not see a feature scaled up by a power of two and down again behind it; INT8 loses
        # all the others to its scale.
        for index in range(4):
            layer = f"model.encoder.layers.{index}"
            weights[f"{layer}.self_attn.v_proj.weight"][0] *= 2**20
            weights[f"{layer}.self_attn.v_proj.bias"][0] *= 2**20
            weights[f"{layer}.self_attn.out_proj.weight"][:, 0] /= 2**20

    spoil(lambda weights: weights.update({n: t.astype(np.float32) for n, t in weights.items()}), checkpoint)
    spoil(blow_up, checkpoint)
    work = tmp_path / "work"
    arguments = ["pack", "--checkpoint", str(checkpoint), "--work", str(work), "--data", str(data)]

    refused = step(*arguments)
    forced = step(*arguments, "--force")

    assert refused.returncode == 2, refused.stderr
    assert "the INT8 pack is refused" in refused.stderr
    assert forced.returncode == 0, forced.stderr
    assert "Objection" in forced.stderr
    assert ModelPack.open(work / "int8").precision == "int8"
