"""What `inspect` tells of a checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.checkpoints import write_checkpoint
from tests.paths import ROOT, STARTER


def inspect(checkpoint: Path, out: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "model_pack", "inspect", "--checkpoint", str(checkpoint), "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    inspection: dict[str, Any] = json.loads(out.read_text("utf-8"))
    for remark in inspection["remarks"]:
        assert f"- {remark}" in done.stdout
    return inspection


def test_the_starter(tmp_path: Path) -> None:
    inspection = inspect(STARTER, tmp_path / "inspection.json")

    numbers = inspection["numbers"]
    config = json.loads((STARTER / "config.json").read_text())
    for name in ("d_model", "encoder_layers", "decoder_layers", "decoder_start_token_id", "vocab_size"):
        assert numbers[name] == config[name]
    assert numbers["max_length"] == 512
    assert numbers["target_rows"] < numbers["vocab_size"]
    remarks = "\n".join(inspection["remarks"])
    for words in (
        "starts with the pad token",
        "Banned tokens: 13343 ('<pad>')",
        "forced '</s>'",
        "4 beams by default; a pack decodes greedily",
        "Targets: zh-Hans",
        "(tied)",
        "post-norm",
        "stored as float16",
        "final_logits_bias is not zero",
        "output rows are beyond target.spm",
    ):
        assert words in remarks


def test_what_is_otherwise_is_said(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(
        tmp_path / "checkpoint",
        STARTER,
        decoder_start_token_id=0,
        bad_words_ids=None,
        forced_eos_token_id=None,
        num_beams=1,
        max_length=20,
        tie_word_embeddings=False,
    )

    remarks = "\n".join(inspect(checkpoint, tmp_path / "inspection.json")["remarks"])

    assert "starts with 0 ('</s>'), which is not the pad token" in remarks
    assert "No forced eos" in remarks
    assert "Untied embeddings: encoder and decoder have a table each, the output head has weights of its own" in remarks
    assert "limited to 20 tokens" in remarks
    assert "beams" not in remarks
    assert "Banned" not in remarks
