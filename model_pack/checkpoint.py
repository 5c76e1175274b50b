"""Reads a Hugging Face MarianMT checkpoint folder, and refuses one that contradicts itself."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from model_pack.errors import ModelPackError
from model_pack.torch_file import load_torch_file

Weights = dict[str, NDArray[np.float32]]

SAFETENSORS_FILE = "model.safetensors"
TORCH_FILE = "pytorch_model.bin"
TARGET_VOCABULARY_FILE = "target_vocab.json"  # where a checkpoint keeps a second vocabulary
LOCK_FILE = "model.lock.json"  # what `fetch` leaves beside the files: where they came from
ACTIVATIONS = ("swish", "silu", "relu", "gelu")

# Config switches whose other setting is another network than the one that network.py writes.
_REQUIRED_SETTINGS = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}


@dataclass(frozen=True)
class Config:
    """The numbers of config.json that shape the network, and those that steer decoding."""

    d_model: int
    encoder_layers: int
    decoder_layers: int
    encoder_attention_heads: int
    decoder_attention_heads: int
    encoder_ffn_dim: int
    decoder_ffn_dim: int
    activation_function: str
    scale_embedding: bool
    vocab_size: int
    decoder_vocab_size: int
    share_encoder_decoder_embeddings: bool
    tie_word_embeddings: bool
    max_position_embeddings: int
    pad_token_id: int
    eos_token_id: int
    decoder_start_token_id: int
    forced_eos_token_id: int | None
    bad_words_ids: tuple[int, ...]
    max_length: int
    num_beams: int  # what generate() uses by default; greedy search does not

    @property
    def has_one_embedding(self) -> bool:
        """Whether encoder, decoder and output head share a table. Untied in part is untied in transformers, too."""
        return self.share_encoder_decoder_embeddings and self.tie_word_embeddings


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
    lock = _read_json(path / LOCK_FILE) if (path / LOCK_FILE).is_file() else {}
    tokenizer_config_path = path / "tokenizer_config.json"
    return Checkpoint(
        path=path,
        config=config,
        tokenizer_config=_read_json(tokenizer_config_path) if tokenizer_config_path.is_file() else {},
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


def read_config(path: Path) -> Config:
    """The numbers in config.json and generation_config.json of folder `path`.

    Raises:
        ModelPackError: not Marian, or a setting that is missing or that the direct builder does not know.
    """
    raw = _read_json(path / "config.json")
    if raw.get("model_type") != "marian":
        raise ModelPackError(
            f"{path / 'config.json'} says model_type {raw.get('model_type')!r}: "
            "only MarianMT checkpoints (model_type 'marian') become model packs."
        )
    generation_path = path / "generation_config.json"
    return _config(raw, _read_json(generation_path) if generation_path.is_file() else {}, path)


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


def _config(raw: dict[str, Any], generation: dict[str, Any], path: Path) -> Config:
    for name, required in _REQUIRED_SETTINGS.items():
        if raw.get(name, required) != required:
            raise ModelPackError(
                f"{path / 'config.json'} has {name} = {raw[name]}; the direct builder knows only {name} = {required}."
            )
    share = bool(raw.get("share_encoder_decoder_embeddings", True))
    if share and raw.get("decoder_vocab_size") not in (None, raw.get("vocab_size")):
        raise ModelPackError(
            f"{path / 'config.json'} shares one embedding but has two vocabulary sizes: vocab_size "
            f"{raw.get('vocab_size')}, decoder_vocab_size {raw['decoder_vocab_size']}."
        )

    def number(name: str) -> int:
        value = raw.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ModelPackError(f"{path / 'config.json'} needs a whole number for {name}, it has {value!r}.")
        return value

    decoder_vocab_size = number("decoder_vocab_size" if raw.get("decoder_vocab_size") else "vocab_size")

    def decoding(name: str) -> Any:
        """generation_config.json decides where it speaks, as in transformers."""
        return generation.get(name, raw.get(name))

    def token_id(name: str) -> int:
        value = decoding(name)
        if not isinstance(value, int) or not 0 <= value < decoder_vocab_size:
            raise ModelPackError(
                f"{path / 'config.json'} needs a token id of the vocabulary for {name}, it has {value!r}."
            )
        return value

    banned = decoding("bad_words_ids") or []
    if any(len(sequence) != 1 for sequence in banned):
        raise ModelPackError(f"{path} bans token sequences (bad_words_ids {banned}); only single tokens can be banned.")
    activation = raw.get("activation_function", "swish")
    if activation not in ACTIVATIONS:
        raise ModelPackError(f"{path / 'config.json'} has activation_function {activation!r}; known: {ACTIVATIONS}.")
    d_model, max_positions = number("d_model"), number("max_position_embeddings")
    for stack in ("encoder", "decoder"):
        heads = number(f"{stack}_attention_heads")
        if not heads or d_model % heads:
            raise ModelPackError(f"{path / 'config.json'}: d_model {d_model} cannot be split into {heads} heads.")
    return Config(
        d_model=d_model,
        encoder_layers=number("encoder_layers"),
        decoder_layers=number("decoder_layers"),
        encoder_attention_heads=number("encoder_attention_heads"),
        decoder_attention_heads=number("decoder_attention_heads"),
        encoder_ffn_dim=number("encoder_ffn_dim"),
        decoder_ffn_dim=number("decoder_ffn_dim"),
        activation_function=activation,
        scale_embedding=bool(raw.get("scale_embedding", False)),
        vocab_size=number("vocab_size"),
        decoder_vocab_size=decoder_vocab_size,
        share_encoder_decoder_embeddings=share,
        tie_word_embeddings=bool(raw.get("tie_word_embeddings", True)),
        max_position_embeddings=max_positions,
        pad_token_id=token_id("pad_token_id"),
        eos_token_id=token_id("eos_token_id"),
        decoder_start_token_id=token_id("decoder_start_token_id"),
        forced_eos_token_id=None if decoding("forced_eos_token_id") is None else token_id("forced_eos_token_id"),
        bad_words_ids=tuple(sequence[0] for sequence in banned),
        max_length=min(decoding("max_length") or max_positions, max_positions),
        num_beams=decoding("num_beams") or 1,
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ModelPackError(f"{path.parent} lacks {path.name}: it is not a complete checkpoint folder.") from error
    except (OSError, ValueError) as error:
        raise ModelPackError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ModelPackError(f"{path} does not hold a JSON object.")
    return content


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
    vocabulary = _read_json(path)
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
