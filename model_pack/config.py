"""Reads config.json and generation_config.json, and refuses settings that the direct builder does not know."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_pack.errors import ModelPackError

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


def read_config(path: Path) -> Config:
    """The numbers in config.json and generation_config.json of folder `path`.

    Raises:
        ModelPackError: not Marian, or a setting that is missing or that the direct builder does not know.
    """
    raw = read_json(path / "config.json")
    if raw.get("model_type") != "marian":
        raise ModelPackError(
            f"{path / 'config.json'} says model_type {raw.get('model_type')!r}: "
            "only MarianMT checkpoints (model_type 'marian') become model packs."
        )
    generation_path = path / "generation_config.json"
    return _config(raw, read_json(generation_path) if generation_path.is_file() else {}, path)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object in a file of a checkpoint.

    Raises:
        ModelPackError: the file is missing, unreadable, or holds something else.
    """
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ModelPackError(f"{path.parent} lacks {path.name}: it is not a complete checkpoint folder.") from error
    except (OSError, ValueError) as error:
        raise ModelPackError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ModelPackError(f"{path} does not hold a JSON object.")
    return content


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
