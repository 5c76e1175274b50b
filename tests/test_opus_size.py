"""The whole road at opus-mt-en-zh's size, with random weights."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from function.engine.model import Model
from function.engine.pack import ModelPack
from tests.paths import ROOT


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opus") / "checkpoint"
    command = [sys.executable, "-m", "model_pack", "random", "--like", "opus-mt-en-zh", "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_a_pack_is_small_builds_in_little_memory_and_runs(checkpoint: Path, tmp_path: Path) -> None:
    limit = 3 << 30  # bytes of address space for the build

    def limit_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    command = [sys.executable, "-m", "model_pack", "build", "--checkpoint", str(checkpoint), "--out"]
    done = subprocess.run(
        [*command, str(tmp_path / "pack")],
        cwd=ROOT,
        preexec_fn=limit_memory,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    pack = ModelPack.open(tmp_path / "pack")
    size = sum(file.stat().st_size for file in pack.path.iterdir())
    assert size < 84e6
    (draft,) = Model(pack, threads=2).decode(["the quick brown fox"])
    assert draft.target_tokens == 511, "random weights never say eos"


def test_an_existing_folder_is_not_overwritten(checkpoint: Path) -> None:
    command = [sys.executable, "-m", "model_pack", "random", "--out", str(checkpoint)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "exists" in done.stderr


def test_an_unknown_model(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "model_pack", "random", "--like", "opus-mt-xx-yy", "--out", str(tmp_path / "x")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "opus-mt-en-zh, or a folder" in done.stderr
