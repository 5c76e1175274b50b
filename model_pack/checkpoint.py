"""Reads a Hugging Face MarianMT checkpoint folder, and refuses one that contradicts itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from model_pack.config import Config, read_config, read_json
from model_pack.errors import ModelPackError
from model_pack.torch_file import load_torch_file

Weights = dict[str, NDArray[np.float32]]

SAFETENSORS_FILE = "model.safetensors"
TORCH_FILE = "pytorch_model.bin"
TARGET_VOCABULARY_FILE = "target_vocab.json"  # where a checkpoint keeps a second vocabulary
LOCK_FILE = "model.lock.json"  # what `fetch` leaves beside the files: where they came from


@dataclass(frozen=True)
class Embeddings:
    """The three tables of rows by token id. Tables that the checkpoint shares are one array, so `is` tells."""

    source: NDArray[np.float32]  # [vocab_size, d_model]
    target: NDArray[np.float32]  # [decoder_vocab_size, d_model]
    head: NDArray[np.float32]  # [decoder_vocab_size, d_model], the output head's weights


@dataclass(frozen=True)
class Checkpoint:
    """A MarianMT checkpoint, read and checked. All weights are float32, whatever they were stored as."""

    path: Path
    config: Config
    tokenizer_config: dict[str, Any]
    weights: Weights
    stored_dtypes: tuple[str, ...]  # of the weights as they were stored
    embeddings: Embeddings
    source_vocabulary: dict[str, int]  # piece -> id
    target_vocabulary: dict[str, int]  # piece -> id; the same one unless the checkpoint keeps two
    model_id: str
    revision: str | None  # the commit, where `fetch` has left its lock
    licence: str | None


def read_checkpoint(path: Path) -> Checkpoint:
    """Read the checkpoint folder at `path`.

    Raises:
        ModelPackError: not a folder, not Marian, a file missing or unreadable, a setting that the direct
            builder does not know, or tensors and vocabulary that contradict config.json.
    """
    if not path.is_dir():
        raise ModelPackError(f"{path} is not a folder: --checkpoint takes a Hugging Face MarianMT checkpoint folder.")
    config = read_config(path)
    for name in ("source.spm", "target.spm", "vocab.json"):
        if not (path / name).is_file():
            raise ModelPackError(f"{path} lacks {name}: copy it from the place the checkpoint came from.")
    stored = _read_weights(path)
    # Half-precision weights give repeated tokens when they are computed with as they are.
    weights = {name: np.asarray(tensor, np.float32) for name, tensor in stored.items()}
    if config.share_encoder_decoder_embeddings and not config.tie_word_embeddings and "model.shared.weight" in weights:
        for stack in ("encoder", "decoder"):
            weights.setdefault(f"model.{stack}.embed_tokens.weight", weights["model.shared.weight"])
    _check_shapes(weights, expected_shapes(config), path)
    source_vocabulary = _vocabulary(path / "vocab.json", config.vocab_size)
    separate = not config.share_encoder_decoder_embeddings and (path / TARGET_VOCABULARY_FILE).is_file()
    lock = read_json(path / LOCK_FILE) if (path / LOCK_FILE).is_file() else {}
    tokenizer_config_path = path / "tokenizer_config.json"
    return Checkpoint(
        path=path,
        config=config,
        tokenizer_config=read_json(tokenizer_config_path) if tokenizer_config_path.is_file() else {},
        weights=weights,
        stored_dtypes=tuple(sorted({tensor.dtype.name for tensor in stored.values()})),
        embeddings=_embeddings(weights, config),
        source_vocabulary=source_vocabulary,
        target_vocabulary=(
            _vocabulary(path / TARGET_VOCABULARY_FILE, config.decoder_vocab_size) if separate else source_vocabulary
        ),
        model_id=lock.get("model_id", path.resolve().name),
        revision=lock.get("commit"),
        licence=_licence(path / "README.md"),
    )


def expected_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that the network needs, in transformers' names (linear: [out, in])."""
    d_model = config.d_model
    shapes: dict[str, tuple[int, ...]] = {}
    if config.has_one_embedding:
        shapes["model.shared.weight"] = (config.vocab_size, d_model)
    else:
        shapes["model.encoder.embed_tokens.weight"] = (config.vocab_size, d_model)
        shapes["model.decoder.embed_tokens.weight"] = (config.decoder_vocab_size, d_model)
    if not config.tie_word_embeddings:
        shapes["lm_head.weight"] = (config.decoder_vocab_size, d_model)

    def linear(name: str, outputs: int, inputs: int) -> None:
        shapes[f"{name}.weight"] = (outputs, inputs)
        shapes[f"{name}.bias"] = (outputs,)

    def layer_norm(name: str) -> None:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (d_model,)

    stacks = (
        ("encoder", config.encoder_layers, config.encoder_ffn_dim, ("self_attn",)),
        ("decoder", config.decoder_layers, config.decoder_ffn_dim, ("self_attn", "encoder_attn")),
    )
    for stack, layers, ffn_dim, attentions in stacks:
        for index in range(layers):
            layer = f"model.{stack}.layers.{index}"
            for attention in attentions:
                for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    linear(f"{layer}.{attention}.{projection}", d_model, d_model)
                layer_norm(f"{layer}.{attention}_layer_norm")
            linear(f"{layer}.fc1", ffn_dim, d_model)
            linear(f"{layer}.fc2", d_model, ffn_dim)
            layer_norm(f"{layer}.final_layer_norm")
    return shapes


def _embeddings(weights: Weights, config: Config) -> Embeddings:
    if config.has_one_embedding:
        shared = weights["model.shared.weight"]
        return Embeddings(shared, shared, shared)
    source, target = (weights[f"model.{stack}.embed_tokens.weight"] for stack in ("encoder", "decoder"))
    return Embeddings(source, target, target if config.tie_word_embeddings else weights["lm_head.weight"])


def _read_weights(path: Path) -> dict[str, NDArray[Any]]:
    if (path / SAFETENSORS_FILE).is_file():
        try:
            return load_file(path / SAFETENSORS_FILE)
        except (SafetensorError, OSError, TypeError, KeyError) as error:
            raise ModelPackError(f"{path / SAFETENSORS_FILE} cannot be read as safetensors: {error}") from error
    if (path / TORCH_FILE).is_file():
        return load_torch_file(path / TORCH_FILE)
    raise ModelPackError(f"{path} lacks {SAFETENSORS_FILE} (or {TORCH_FILE}): there are no weights to read.")


def _check_shapes(weights: Weights, expected: dict[str, tuple[int, ...]], path: Path) -> None:
    for name, shape in expected.items():
        if name not in weights:
            raise ModelPackError(f"the weights in {path} lack {name}, which config.json promises.")
        if weights[name].shape != shape:
            raise ModelPackError(
                f"the weights in {path} contradict config.json: {name} is {weights[name].shape}, not {shape}."
            )


def _vocabulary(path: Path, vocab_size: int) -> dict[str, int]:
    vocabulary = read_json(path)
    seen: dict[int, str] = {}
    for piece, id_ in vocabulary.items():
        if not isinstance(id_, int) or not 0 <= id_ < vocab_size:
            raise ModelPackError(f"{path} gives {piece!r} the id {id_!r}, outside the vocab_size {vocab_size}.")
        if id_ in seen:
            raise ModelPackError(f"{path} gives the id {id_} to both {seen[id_]!r} and {piece!r}.")
        if "\n" in piece:
            raise ModelPackError(f"{path} has a piece with a line break in it: {piece!r}.")
        seen[id_] = piece
    return vocabulary


def _licence(model_card: Path) -> str | None:
    """The licence that the front matter of the model card names."""
    if not model_card.is_file():
        return None
    front_matter = re.match(r"---\n(.*?)\n---", model_card.read_text("utf-8"), re.DOTALL)
    named = front_matter and re.search(r"^license:\s*(\S+)\s*$", front_matter.group(1), re.MULTILINE)
    return named.group(1) if named else None
