"""Checkpoints with small random networks around real tokenizer files, and the command that builds packs of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from model_pack.random_checkpoint import TOKENIZER_FILES, random_weights
from tests.paths import ROOT


def write_checkpoint(folder: Path, tokenizer_files: Path, **changes: Any) -> Path:
    """A checkpoint of one encoder and two decoder layers with d_model 16; `changes` go into its config."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        shutil.copy(tokenizer_files / name, folder / name)
        (folder / name).chmod(0o644)
    config = json.loads((tokenizer_files / "config.json").read_text("utf-8")) | {
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 40,
        "max_position_embeddings": 64,
        "max_length": 64,
        **changes,
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    save_file(random_weights(folder), folder / "model.safetensors")
    return folder


def build(checkpoint: Path, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "model_pack", "build", "--checkpoint", str(checkpoint), "--out", str(out)]
    return subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def assert_refused(done: subprocess.CompletedProcess[str], words: str, folder: Path) -> None:
    """Exit status 2, the words, no traceback, and nothing written."""
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in folder.iterdir()] == ["checkpoint"]


def weights_of(pack: Path) -> bytes:
    return b"".join((pack / name).read_bytes() for name in ("weights.bin", "output_head.bin") if (pack / name).exists())
