"""Building packs: what comes out, and what is refused with what words."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from function.engine.model import Model
from function.engine.pack import MANIFEST, ModelPack
from function.engine.translator import Translation, Translator
from tests.checkpoints import assert_refused, build, weights_of, write_checkpoint
from tests.paths import ROOT, STARTER, sha256
from tests.spm import change_spm


def change_json(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")


def change_weights(checkpoint: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    change(weights)
    save_file(weights, checkpoint / "model.safetensors")


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_a_build_gives_a_pack_that_translates(tmp_path: Path, precision: str) -> None:
    done = build(STARTER, tmp_path / "new" / "pack", "--precision", precision)

    assert done.returncode == 0, done.stderr
    pack = ModelPack.open(tmp_path / "new" / "pack")
    assert pack.precision == precision
    (translation,) = Translator(pack, threads=1).translate(["Good morning."])
    assert isinstance(translation, Translation)
    assert translation.text
    manifest = json.loads((pack.path / MANIFEST).read_text("utf-8"))
    assert set(manifest["files"]) == {file.name for file in pack.path.iterdir()} - {MANIFEST}
    assert manifest["files"]["weights.bin"]["sha256"] == sha256(pack.path / "weights.bin")
    assert manifest["model"] == {"id": "starter", "revision": None, "licence": "apache-2.0"}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["pack"]


def test_int8_is_the_default_and_a_quarter_of_the_size(int8_pack: Path, fp32_pack: Path) -> None:
    assert len(weights_of(int8_pack)) < 0.28 * len(weights_of(fp32_pack))


def test_the_same_checkpoint_gives_the_same_bytes(checkpoint: Path, tmp_path: Path) -> None:
    build(checkpoint, tmp_path / "first")
    build(checkpoint, tmp_path / "second")

    first = {file.name: file.read_bytes() for file in (tmp_path / "first").iterdir()}
    assert first == {file.name: file.read_bytes() for file in (tmp_path / "second").iterdir()}


def test_a_build_replaces_the_pack_that_stands_there(checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "pack"
    build(checkpoint, out, "--precision", "fp32")

    done = build(checkpoint, out, "--precision", "int8")

    assert done.returncode == 0
    assert ModelPack.open(out).precision == "int8"


def test_half_precision_checkpoints_are_computed_in_fp32(checkpoint: Path, tmp_path: Path) -> None:
    change_weights(checkpoint, lambda w: w.update({name: t.astype(np.float16) for name, t in w.items()}))
    build(checkpoint, tmp_path / "half", "--precision", "fp32")
    change_weights(checkpoint, lambda w: w.update({name: t.astype(np.float32) for name, t in w.items()}))
    build(checkpoint, tmp_path / "full", "--precision", "fp32")

    assert weights_of(tmp_path / "half") == weights_of(tmp_path / "full")


@pytest.mark.parametrize("activation", ["swish", "relu", "gelu"])
def test_activations(tmp_path: Path, activation: str) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", STARTER, activation_function=activation)

    assert build(checkpoint, tmp_path / "pack").returncode == 0


def test_numbers_of_generation_config_win(checkpoint: Path, tmp_path: Path) -> None:
    (checkpoint / "generation_config.json").write_text('{"max_length": 9}')

    build(checkpoint, tmp_path / "pack")

    generation = ModelPack.open(tmp_path / "pack").generation
    assert generation.max_length == 9
    (draft,) = Model(ModelPack.open(tmp_path / "pack"), threads=1).decode(["Good morning."])
    assert draft.target_tokens <= 8


CONFIG_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "bart"}, "model_type 'bart': only MarianMT"),
    ({"normalize_before": True}, "normalize_before = True; the direct builder knows only normalize_before = False"),
    ({"share_encoder_decoder_embeddings": False}, "lack model.encoder.embed_tokens.weight"),
    ({"tie_word_embeddings": False}, "lack lm_head.weight"),
    ({"decoder_vocab_size": 5}, "two vocabulary sizes: vocab_size 13344, decoder_vocab_size 5"),
    ({"activation_function": "tanh"}, "activation_function 'tanh'"),
    ({"d_model": None}, "needs a whole number for d_model, it has None"),
    ({"d_model": 18}, "d_model 18 cannot be split into 4 heads"),
    ({"encoder_attention_heads": 0}, "cannot be split into 0 heads"),
    ({"encoder_layers": 2}, "lack model.encoder.layers.1.self_attn"),
    ({"encoder_ffn_dim": 25}, "model.encoder.layers.0.fc1.weight is (24, 16), not (25, 16)"),
    ({"vocab_size": 13345, "decoder_vocab_size": 13345}, "model.shared.weight is (13344, 16), not (13345, 16)"),
    ({"eos_token_id": "x"}, "needs a token id of the vocabulary for eos_token_id, it has 'x'"),
    ({"decoder_start_token_id": 99999}, "for decoder_start_token_id, it has 99999"),
    ({"bad_words_ids": [[1, 2]]}, "only single tokens can be banned"),
]


@pytest.mark.parametrize(("changes", "words"), CONFIG_CHANGES, ids=[words[:30] for _, words in CONFIG_CHANGES])
def test_config_that_cannot_be_built(checkpoint: Path, tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    change_json(checkpoint / "config.json", lambda config: config.update(changes))

    assert_refused(build(checkpoint, tmp_path / "pack"), words, tmp_path)


@pytest.mark.parametrize(
    "name", ["config.json", "source.spm", "target.spm", "vocab.json", "model.safetensors", "tokenizer_config.json"]
)
def test_a_missing_file_is_named(checkpoint: Path, tmp_path: Path, name: str) -> None:
    (checkpoint / name).unlink()

    assert_refused(build(checkpoint, tmp_path / "pack"), name, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", b"{", "config.json cannot be read"),
        ("config.json", b"[]", "does not hold a JSON object"),
        ("model.safetensors", b"junk", "cannot be read as safetensors"),
        ("source.spm", b"junk", "source.spm is not a SentencePiece model"),
        ("target.spm", b"", "target.spm holds no pieces"),
        ("vocab.json", b'{"</s>": 0, "<unk>": 1, "<pad>": 1}', "gives the id 1 to both '<unk>' and '<pad>'"),
        ("vocab.json", b'{"</s>": 0, "<unk>": 99999}', "outside the vocab_size"),
        ("vocab.json", b'{"</s>": 0, "<unk>": 1}', "has no piece for the ids [13343]"),
        ("tokenizer_config.json", b'{"source_lang": "en"}', "must name the languages"),
    ],
)
def test_a_damaged_file_is_named(checkpoint: Path, tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (checkpoint / name).write_bytes(content)

    assert_refused(build(checkpoint, tmp_path / "pack"), words, tmp_path)


def set_bpe(proto: Any) -> None:
    proto.trainer_spec.model_type = 2


def set_no_dummy_prefix(proto: Any) -> None:
    proto.normalizer_spec.add_dummy_prefix = False


def set_byte_piece(proto: Any) -> None:
    proto.pieces[100].type = 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_bpe, "is a BPE model"),
        (set_no_dummy_prefix, "treats spaces in another way"),
        (set_byte_piece, "pieces of the kind BYTE"),
    ],
)
def test_an_spm_of_another_kind(checkpoint: Path, tmp_path: Path, change: Callable[[Any], None], words: str) -> None:
    change_spm(checkpoint / "source.spm", change)

    assert_refused(build(checkpoint, tmp_path / "pack"), words, tmp_path)


def test_a_refused_build_leaves_the_old_pack(checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "pack"
    build(checkpoint, out)
    before = weights_of(out)
    (checkpoint / "target.spm").write_bytes(b"junk")

    assert build(checkpoint, out).returncode == 2
    assert weights_of(out) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "pack"]


def test_a_folder_that_is_no_pack_is_not_replaced(checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "precious"
    out.mkdir()
    (out / "thesis.txt").write_text("ten years of work")

    done = build(checkpoint, out)

    assert done.returncode == 2
    assert "exists and is not a model pack" in done.stderr
    assert (out / "thesis.txt").read_text() == "ten years of work"


def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", STARTER, d_model=512, decoder_ffn_dim=2048, decoder_layers=6)
    command = [sys.executable, "-m", "model_pack", "build", "--checkpoint", str(checkpoint), "--out"]
    process = subprocess.Popen([*command, str(tmp_path / "pack")], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Writing the encoder"):
            process.send_signal(signal.SIGINT)
            break
    rest = process.stderr.read()

    assert process.wait(timeout=60) == 130, rest
    assert "interrupted" in rest
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_help_names_every_option() -> None:
    command = [sys.executable, "-m", "model_pack", "build", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert all(option in done.stdout for option in ("--checkpoint", "--out", "--precision"))
