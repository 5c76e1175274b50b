"""The whole road from a checkpoint folder to a pack that the engine has opened and run."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import function
from function.engine.model import Model
from function.engine.pack import FORMAT_VERSION, MANIFEST, ModelPack
from model_pack.checkpoint import Checkpoint, read_checkpoint
from model_pack.errors import ModelPackError
from model_pack.languages import languages
from model_pack.network import Tensors, write_network
from model_pack.parameters import Network
from model_pack.quantization import Quantization
from model_pack.tokenizer import target_rows, write_tokenizer

_TOOLS = ("numpy", "onnx", "onnxruntime", "safetensors", "sentencepiece")


GraphWriter = Callable[[Checkpoint, list[int], Path], Tensors]


def build_pack(
    checkpoint_path: Path,
    out: Path,
    quantization: Quantization | None,
    say: Callable[[str], None],
    *,
    keep_all_rows: bool = False,
) -> None:
    """Build the pack of the checkpoint folder in folder `out` by the direct road, replacing a pack that stands there.

    Args:
        quantization: how weights and activations become 8-bit integers; None for a float32 pack.
        say: called with a line about each stage.
        keep_all_rows: keep the output head's rows that target.spm cannot produce.

    Raises:
        ModelPackError: the checkpoint cannot become a pack, or `out` holds something else than a pack.
    """

    def write_graphs(checkpoint: Checkpoint, target_ids: list[int], folder: Path) -> Tensors:
        return write_network(
            Network(checkpoint.config, checkpoint.weights, checkpoint.embeddings, target_ids, quantization), folder
        )

    described = {"precision": "fp32"} if quantization is None else quantization.describe()
    write_pack(checkpoint_path, out, write_graphs, described, say, keep_all_rows=keep_all_rows)


def write_pack(
    checkpoint_path: Path,
    out: Path,
    write_graphs: GraphWriter,
    quantization: dict[str, Any],
    say: Callable[[str], None],
    *,
    keep_all_rows: bool,
) -> None:
    """Write a pack around graphs that `write_graphs` writes for the checkpoint and the kept target rows.

    The pack is built beside `out` and takes its name only when the engine has run it, so that an
    interrupted or refused build leaves `out` as it was.

    Raises:
        ModelPackError: as `build_pack`.
    """
    if out.exists() and not (out / MANIFEST).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ModelPackError(f"{out} exists and is not a model pack; choose another --out or remove it.")
    say(f"Reading {checkpoint_path}")
    checkpoint = read_checkpoint(checkpoint_path)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as workspace:
        pack, replaced = Path(workspace, "pack"), Path(workspace, "replaced")
        pack.mkdir()
        rows = target_rows(checkpoint, keep_all=keep_all_rows)
        say(f"Converting the tokenizer: {len(checkpoint.source_vocabulary)} source pieces, {len(rows)} target ids")
        tokenizer = write_tokenizer(checkpoint, list(rows.values()), pack)
        say(f"Writing the encoder and the decoder step, {quantization['precision']}")
        tensors = write_graphs(checkpoint, list(rows), pack)
        manifest = _manifest(checkpoint, list(rows), tokenizer, tensors, quantization)
        manifest["files"] = {file.name: _facts(file) for file in sorted(pack.iterdir())}
        (pack / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", "utf-8")
        say("Checking the pack with the engine")
        _check(pack)
        if out.exists():
            out.rename(replaced)
        try:
            pack.rename(out)
        except BaseException:
            if replaced.exists():
                replaced.rename(out)
            raise
    size = sum(file.stat().st_size for file in out.iterdir())
    say(f"Built {out}: {quantization['precision']}, {size / 1e6:.1f} MB")


def _check(pack: Path) -> None:
    """Decode a letter: the engine must open the pack and run both graphs.

    A model without sense may go on to the limit, so a short one will do.
    """
    opened = ModelPack.open(pack)
    short = replace(opened, generation=replace(opened.generation, max_length=min(4, opened.generation.max_length)))
    Model(short, threads=1).decode(["a"], short.targets[0].token)


def _manifest(
    checkpoint: Checkpoint,
    target_ids: list[int],
    tokenizer: dict[str, object],
    tensors: Tensors,
    quantization: dict[str, Any],
) -> dict[str, Any]:
    config = checkpoint.config
    forced_eos = config.forced_eos_token_id
    return {
        "format_version": FORMAT_VERSION,
        "model": {"id": checkpoint.model_id, "revision": checkpoint.revision, "licence": checkpoint.licence},
        "languages": languages(checkpoint),
        "network": {
            "d_model": config.d_model,
            "decoder_layers": config.decoder_layers,
            "decoder_attention_heads": config.decoder_attention_heads,
            "max_positions": config.max_position_embeddings,
        },
        "generation": {
            "decoder_start_token_id": target_ids.index(config.decoder_start_token_id),
            "eos_token_id": target_ids.index(config.eos_token_id),
            "forced_eos_token_id": None if forced_eos is None else target_ids.index(forced_eos),
            "banned_token_ids": [target_ids.index(id_) for id_ in config.bad_words_ids],
            "max_length": config.max_length,
        },
        "tokenizer": tokenizer,
        "tensors": tensors,
        "quantization": quantization,
        "tools": {
            "marian-lambda": function.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _TOOLS},
        },
    }


def _facts(file: Path) -> dict[str, object]:
    content = file.read_bytes()
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
