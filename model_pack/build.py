"""The whole road from a checkpoint folder to a pack that the engine has opened and run."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

import function
from function.engine.pack import FORMAT_VERSION, MANIFEST, ModelPack
from function.engine.translator import Translator
from model_pack.checkpoint import Checkpoint, read_checkpoint
from model_pack.errors import ModelPackError
from model_pack.languages import languages
from model_pack.linear import Precision
from model_pack.network import Network, write_network
from model_pack.tokenizer import target_vocabulary, write_tokenizer

_TOOLS = ("numpy", "onnx", "onnxruntime", "safetensors", "sentencepiece", "tokenizers")


def build_pack(checkpoint_path: Path, out: Path, precision: Precision, say: Callable[[str], None]) -> None:
    """Build the pack of the checkpoint folder in folder `out`, replacing a pack that stands there.

    The pack is built beside `out` and takes its name only when the engine has run it, so that an
    interrupted or refused build leaves `out` as it was.

    Args:
        say: called with a line about each stage.

    Raises:
        ModelPackError: the checkpoint cannot become a pack, or `out` holds something else than a pack.
    """
    if out.exists() and not (out / MANIFEST).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ModelPackError(f"{out} exists and is not a model pack; choose another --out or remove it.")
    say(f"Reading {checkpoint_path}")
    checkpoint = read_checkpoint(checkpoint_path)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as workspace:
        pack = Path(workspace, "pack")
        pack.mkdir()
        _write_pack(checkpoint, pack, precision, say)
        say("Checking the pack with the engine")
        Translator(ModelPack.open(pack), threads=1).translate(["a"])
        replaced = Path(workspace, "replaced")
        if out.exists():
            out.rename(replaced)
        try:
            pack.rename(out)
        except BaseException:
            if replaced.exists():
                replaced.rename(out)
            raise
    size = sum(file.stat().st_size for file in out.iterdir())
    say(f"Built {out}: {precision}, {size / 1e6:.1f} MB")


def _write_pack(checkpoint: Checkpoint, pack: Path, precision: Precision, say: Callable[[str], None]) -> None:
    config = checkpoint.config
    targets = target_vocabulary(checkpoint)
    target_ids = [checkpoint.vocabulary[piece] for piece in targets]
    say(f"Converting the tokenizer: {config.vocab_size} source ids, {len(targets)} target ids")
    tokenizer = write_tokenizer(checkpoint, targets, pack)
    say(f"Writing the encoder and the decoder step, {precision}")
    tensors = write_network(Network(config, checkpoint.weights, target_ids, precision), pack)
    manifest = {
        "format_version": FORMAT_VERSION,
        "model": {"id": checkpoint.model_id, "licence": checkpoint.licence},
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
            "forced_eos_token_id": (
                None if config.forced_eos_token_id is None else target_ids.index(config.forced_eos_token_id)
            ),
            "banned_token_ids": [target_ids.index(id_) for id_ in config.bad_words_ids],
            "max_length": config.max_length,
        },
        "tokenizer": tokenizer,
        "tensors": tensors,
        "quantization": {"precision": precision},
        "tools": {
            "marian-lambda": function.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _TOOLS},
        },
        "files": {file.name: _facts(file) for file in sorted(pack.iterdir())},
    }
    (pack / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", "utf-8")


def _facts(file: Path) -> dict[str, object]:
    content = file.read_bytes()
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
