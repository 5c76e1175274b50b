"""Prepares the models that are measured, and keeps them until what they are made from has changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import onnx

from benchmarks.cut_vocabulary import cut_vocabulary
from benchmarks.errors import BenchError
from benchmarks.plan import OPUS, STARTER
from benchmarks.processes import ROOT, python_for
from function.engine.pack import ModelPack
from function.engine.sessions import DECODER_FILE
from model_pack.random_checkpoint import write_random_checkpoint

STARTER_CHECKPOINT = ROOT / "model_pack" / "starter"

_BUILDER = ("function/engine/*.py", "model_pack/*.py")
_RANDOM = ("model_pack/random_checkpoint.py",)
_STARTER = ("model_pack/starter/*.json", "model_pack/starter/*.spm", "model_pack/starter/*.safetensors")
_PEERS = ("benchmarks/peer_models.py", "benchmarks/requirements.txt", "model_pack/optimum-requirements.txt")
_CUT = ("benchmarks/cut_vocabulary.py",)


@dataclass(frozen=True)
class Recipe:
    """How one folder is made.

    Attributes:
        sources: patterns of the files in the repository that decide its content.
        needs: the models that it is made from.
        make: writes the folder.
    """

    sources: tuple[str, ...]
    needs: tuple[str, ...]
    make: Callable[[Models, Path], None]


class Models:
    """The folder of models, by names such as "opus-ours-int8"."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say

    def path(self, name: str) -> Path:
        return STARTER_CHECKPOINT if name == f"{STARTER}-checkpoint" else self._folder / name

    def megabytes(self, name: str) -> float:
        """What the model's folder weighs, in 10^6 bytes."""
        return sum(file.stat().st_size for file in self.path(name).iterdir() if file.is_file()) / 1e6

    def prepare(self, names: Iterable[str]) -> None:
        """Make those that are missing or out of date, and what they are made from.

        Raises:
            BenchError: one cannot be made.
        """
        for name in names:
            self._prepare(name)

    def _prepare(self, name: str) -> str:
        """Returns: what the model's content depends on, as a digest."""
        recipe = RECIPES[name]
        needed = [self._prepare(other) for other in recipe.needs]
        key = hashlib.sha256("\n".join([_digest(recipe.sources), *needed]).encode()).hexdigest()
        folder, stamp = self.path(name), self._folder / f"{name}.key"
        if folder.is_dir() and (folder == STARTER_CHECKPOINT or (stamp.is_file() and stamp.read_text() == key)):
            return key
        self._say(f"Preparing {name}")
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / f".{name}.partial"
        stamp.unlink(missing_ok=True)
        for old in (partial, folder):
            if old.exists():
                shutil.rmtree(old)
        recipe.make(self, partial)
        _forget_pages(partial)
        partial.rename(folder)
        stamp.write_text(key)
        return key


def _forget_pages(folder: Path) -> None:
    """Take what was just written out of the page cache.

    Linux maps with a page all that was cached with it, and caches what is written in larger pieces than what is read.
    The memory of a process that maps the file would depend on who has written it.
    """
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def target_rows(pack: Path) -> int:
    """How many rows the output head of a pack has."""
    outputs = onnx.load(pack / DECODER_FILE, load_external_data=False).graph.output
    shapes = {output.name: output.type.tensor_type.shape for output in outputs}
    return sum(int(shape.dim[-1].dim_value) for name, shape in shapes.items() if name.startswith("logits."))


def bytes_of_a_step(pack: Path) -> int:
    """How many bytes of weights one decoder step reads: every matrix that is multiplied with, the output head too.

    Embedding and position tables are not among them: a step reads single rows of those, by Gather.
    """
    model = onnx.load(pack / DECODER_FILE, load_external_data=False)
    multiplied = {name for node in model.graph.node if node.op_type != "Gather" for name in node.input}
    sizes = {
        tensor.name: onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * _product(tensor.dims)
        for tensor in model.graph.initializer
        if tensor.name in multiplied and tensor.name.endswith(".weight") and len(tensor.dims) > 1
    }
    return sum(sizes.values())


def _product(dims: Iterable[int]) -> int:
    result = 1
    for dim in dims:
        result *= dim
    return result


def _digest(patterns: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for pattern in patterns:
        for file in sorted(ROOT.glob(pattern)):
            digest.update(f"{file.name}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _random_checkpoint(_: Models, out: Path) -> None:
    write_random_checkpoint("opus-mt-en-zh", out, lambda _: None)


def _cut_checkpoint(models: Models, out: Path) -> None:
    cut_vocabulary(models.path(f"{OPUS}-checkpoint"), out, target_rows(models.path(f"{OPUS}-ours-int8")))


def _pack(checkpoint: str, precision: str) -> Callable[[Models, Path], None]:
    def make(models: Models, out: Path) -> None:
        command = [sys.executable, "-m", "model_pack", "build", "--checkpoint", str(models.path(checkpoint))]
        _run([*command, "--out", str(out), "--precision", precision], out.name)
        ModelPack.open(out)

    return make


def _peer(step: str, source: str) -> Callable[[Models, Path], None]:
    def make(models: Models, out: Path) -> None:
        command = [str(python_for(step)), "-m", "benchmarks.peer_models", step, str(models.path(source)), str(out)]
        _run(command, out.name)

    return make


def _run(command: list[str], name: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{name} cannot be made; the end of what was said:\n{done.stderr.strip()[-2000:]}")


def _recipes() -> dict[str, Recipe]:
    recipes = {
        f"{OPUS}-checkpoint": Recipe(_RANDOM, (), _random_checkpoint),
        f"{STARTER}-checkpoint": Recipe(_STARTER, (), lambda _, __: None),  # it is in the repository
        f"{OPUS}-cut-checkpoint": Recipe(_CUT, (f"{OPUS}-checkpoint", f"{OPUS}-ours-int8"), _cut_checkpoint),
        f"{OPUS}-ctranslate2-int8-same-rows": Recipe(
            _PEERS, (f"{OPUS}-cut-checkpoint",), _peer("ctranslate2", f"{OPUS}-cut-checkpoint")
        ),
    }
    for model in (OPUS, STARTER):
        checkpoint, export = f"{model}-checkpoint", f"{model}-optimum-fp32"
        for precision in ("int8", "fp32"):
            recipes[f"{model}-ours-{precision}"] = Recipe(_BUILDER, (checkpoint,), _pack(checkpoint, precision))
        recipes[export] = Recipe(_PEERS, (checkpoint,), _peer("optimum", checkpoint))
        recipes[f"{model}-optimum-int8"] = Recipe(_PEERS, (export,), _peer("quantize", export))
        convert = "ctranslate2" if model == OPUS else "ctranslate2-with-pad"
        recipes[f"{model}-ctranslate2-int8"] = Recipe(_PEERS, (checkpoint,), _peer(convert, checkpoint))
    return recipes


RECIPES = _recipes()
