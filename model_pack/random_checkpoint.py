"""Writes checkpoints with random weights: the size of a model, without the model.

For size figures, benchmarks and tests where the real weights cannot be had.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sentencepiece import sentencepiece_model_pb2

from function.engine.charsmap import SPACE_MARK
from model_pack.checkpoint import SAFETENSORS_FILE, TARGET_VOCABULARY_FILE, expected_shapes
from model_pack.config import read_config
from model_pack.errors import ModelPackError
from model_pack.tokenizer import read_spm

STARTER = Path(__file__).parent / "starter"
TOKENIZER_FILES = ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json")

# config.json of Helsinki-NLP/opus-mt-en-zh (Apache-2.0), the numbers that shape it.
_OPUS_MT_EN_ZH = {
    "activation_function": "swish",
    "architectures": ["MarianMTModel"],
    "bad_words_ids": [[65000]],
    "bos_token_id": 0,
    "d_model": 512,
    "decoder_attention_heads": 8,
    "decoder_ffn_dim": 2048,
    "decoder_layers": 6,
    "decoder_start_token_id": 65000,
    "encoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "encoder_layers": 6,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "is_encoder_decoder": True,
    "max_length": 512,
    "max_position_embeddings": 512,
    "model_type": "marian",
    "normalize_before": False,
    "normalize_embedding": False,
    "num_beams": 4,
    "pad_token_id": 65000,
    "scale_embedding": True,
    "static_position_embeddings": True,
    "vocab_size": 65001,
}
LIKE = {"opus-mt-en-zh": _OPUS_MT_EN_ZH}
_SPM_PIECES = 32_000  # of each side, as in opus-mt


def write_random_checkpoint(like: str, out: Path, say: Callable[[str], None]) -> None:
    """Write a checkpoint into the new folder `out`.

    Args:
        like: "opus-mt-en-zh" for its exact size, with made-up pieces; or a folder with a config.json and
            tokenizer files, which are copied.

    Raises:
        ModelPackError: `out` is there already, or `like` is neither a known name nor such a folder.
    """
    if out.exists():
        raise ModelPackError(f"{out} exists; choose another --out or remove it.")
    folder = Path(like)
    if like in LIKE:
        config: dict[str, Any] = LIKE[like]
    elif (folder / "config.json").is_file():
        config = json.loads((folder / "config.json").read_text("utf-8"))
    else:
        raise ModelPackError(f"--like takes {' or '.join(LIKE)}, or a folder with a config.json; not {like!r}.")
    out.mkdir(parents=True)
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")
    if like in LIKE:
        _write_made_up_tokenizer(out, config)
    else:
        for name in (*TOKENIZER_FILES, TARGET_VOCABULARY_FILE):
            if (folder / name).is_file():
                shutil.copyfile(folder / name, out / name)
    weights = random_weights(out)
    save_file({name: tensor.astype(np.float16) for name, tensor in weights.items()}, out / SAFETENSORS_FILE)
    parameters = sum(tensor.size for tensor in weights.values())
    say(f"Wrote {out}: {parameters / 1e6:.1f} million random parameters, like {like}")


def random_weights(checkpoint: Path) -> dict[str, NDArray[np.float32]]:
    """Weights for the folder's config.json, always the same for the same one.

    Scaled so that greedy output follows the source, which plain noise does not: then cross-attention
    speaks loudest, and no sentence ends before its limit.
    """
    config = read_config(checkpoint)
    generator = np.random.default_rng(1)
    scales = {"q_proj": 3.0, "k_proj": 3.0, "encoder_attn.out_proj": 6.0}
    weights: dict[str, NDArray[np.float32]] = {}
    for name, shape in expected_shapes(config).items():
        layer, _, kind = name.rpartition(".")
        noise = generator.standard_normal(shape, np.float32)
        noise *= np.float32(shape[-1] ** -0.5)
        if layer.endswith("layer_norm") and kind == "weight":
            noise += 1
        elif kind == "weight":
            noise *= np.float32(next((scale for ending, scale in scales.items() if layer.endswith(ending)), 1.0))
        weights[name] = noise
    bias = generator.standard_normal((1, config.decoder_vocab_size), np.float32)
    bias *= np.float32(0.1)
    bias[0, config.eos_token_id] = -20
    weights["final_logits_bias"] = bias
    return weights


def _write_made_up_tokenizer(out: Path, config: dict[str, Any]) -> None:
    """Two spm files and one vocabulary, as large as real ones, with the starter's rules of normalisation."""
    generator = random.Random(1)
    vocab_size = config["vocab_size"]
    sides = {"source": _words("abcdefghijklmnopqrstuvwxyz", generator), "target": _words(_han(), generator)}
    vocabulary = {"</s>": 0, "<unk>": 1}
    for side, words in sides.items():
        pieces = list(itertools.islice(words, _SPM_PIECES - 3))
        _write_spm(out / f"{side}.spm", STARTER / f"{side}.spm", pieces, generator)
        for piece in pieces:
            vocabulary.setdefault(piece, len(vocabulary))
    for number in itertools.count():
        if len(vocabulary) == vocab_size - 1:
            break
        vocabulary[f"{SPACE_MARK}filler{number}"] = len(vocabulary)
    vocabulary["<pad>"] = vocab_size - 1
    (out / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), "utf-8")
    (out / "tokenizer_config.json").write_text('{"source_lang": "en", "target_lang": "zh"}\n', "utf-8")


def _write_spm(path: Path, rules: Path, pieces: list[str], generator: random.Random) -> None:
    read_spm(rules)  # refuses what is no spm file
    proto = getattr(sentencepiece_model_pb2, "ModelProto")()  # noqa: B009 (generated code, unknown to type checkers)
    proto.ParseFromString(rules.read_bytes())
    control = [(piece.piece, piece.type) for piece in proto.pieces[:3]]
    del proto.pieces[:]
    for piece, kind in control:
        proto.pieces.add(piece=piece, score=0.0, type=kind)
    for rank, piece in enumerate(pieces):
        proto.pieces.add(piece=piece, score=-3 - 10 * (rank + generator.random()) / len(pieces))
    path.write_bytes(proto.SerializeToString())


def _words(letters: str, generator: random.Random) -> Iterator[str]:
    """Every letter, alone and at the start of a word, then words without end, none twice."""
    seen = set()
    for letter in letters:
        yield from (letter, SPACE_MARK + letter)
    while True:
        word = "".join(generator.choices(letters, k=generator.randint(2, 7)))
        piece = SPACE_MARK + word if generator.random() < 0.6 else word
        if piece not in seen:
            seen.add(piece)
            yield piece


def _han() -> str:
    return "".join(map(chr, range(0x4E00, 0x4E00 + 3000)))
