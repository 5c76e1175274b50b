"""Packs for other languages, scripts and vocabularies than the starter's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import save_file

from function.engine.pack import Language, ModelPack
from function.engine.tokenizer import Tokenizer
from function.engine.translator import Translation, Translator
from function.text.guard import Problem
from model_pack.build import build_pack
from model_pack.random_checkpoint import random_weights
from tests.checkpoints import write_checkpoint
from tests.paths import OPUS_FILES, STARTER


def build(checkpoint: Path) -> ModelPack:
    build_pack(checkpoint, checkpoint.with_name("pack"), None, say=lambda _: None)
    return ModelPack.open(checkpoint.with_name("pack"))


def with_pieces(checkpoint: Path, pieces: dict[str, int], **tokenizer_config: Any) -> Path:
    """Put pieces in the place of those that have their ids, and change tokenizer_config.json."""
    vocabulary = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
    kept = {piece: id_ for piece, id_ in vocabulary.items() if id_ not in pieces.values()}
    (checkpoint / "vocab.json").write_text(json.dumps(kept | pieces), "utf-8")
    config = json.loads((checkpoint / "tokenizer_config.json").read_text("utf-8"))
    (checkpoint / "tokenizer_config.json").write_text(json.dumps(config | tokenizer_config), "utf-8")
    return checkpoint


def test_language_tokens_become_targets(checkpoint: Path) -> None:
    tokens = {">>yue<<": 13000, ">>cmn<<": 13001, ">>cmn_Hant<<": 13002, ">>cmn_Hans<<": 13003, ">>xxx_no<<": 13004}
    pack = build(with_pieces(checkpoint, tokens, source_lang="eng", target_lang="zho"))

    assert pack.source == Language("en", "English")
    assert [(target.code, target.aliases, target.token) for target in pack.targets] == [
        ("zh-Hans", ("zh",), ">>cmn_Hans<<"),
        ("zh-Hant", (), ">>cmn_Hant<<"),
        ("yue", (), ">>yue<<"),
    ]


def test_the_token_of_the_target_goes_before_the_text(checkpoint: Path) -> None:
    pack = build(with_pieces(checkpoint, {">>cmn_Hans<<": 13003, ">>cmn_Hant<<": 13002}))
    tokenizer, (hans, hant) = Tokenizer(pack), pack.targets

    assert tokenizer.encode_text("hello", hant.token) == [13002, *tokenizer.encode_text("hello")]
    assert tokenizer.encode_text("hello", hant.token) == tokenizer.encode(">>cmn_Hant<< hello")
    translator = Translator(pack, threads=1)
    results = translator.translate(["hello there"] * 3, [hans, hant, hans])
    texts = [result.text for result in results if isinstance(result, Translation)]
    assert texts[0] == texts[2] != texts[1]


def test_what_comes_out_in_the_other_script_is_flagged(tmp_path: Path) -> None:
    """The starter writes simplified characters, whatever it is asked for."""
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(STARTER, checkpoint, ignore=shutil.ignore_patterns("eval", "recipe"))
    checkpoint.chmod(0o755)
    pack = build(with_pieces(checkpoint, {">>cmn_Hans<<": 13003, ">>cmn_Hant<<": 13002}))
    hans, hant = pack.targets
    texts = ["Where is the train station?", "The train leaves at noon.", "They speak many languages."]

    results = Translator(pack, threads=1).translate(texts * 2, [hans] * 3 + [hant] * 3)

    problems = [result.problem for result in results if isinstance(result, Translation)]
    assert Problem.SCRIPT not in problems[:3]
    assert Problem.SCRIPT in problems[3:]


def test_many_targets_of_a_family(checkpoint: Path) -> None:
    tokens = {">>fra<<": 13000, ">>spa<<": 13001, ">>por_BR<<": 13002}
    pack = build(with_pieces(checkpoint, tokens, target_lang="roa"))

    assert {(target.code, target.name) for target in pack.targets} == {
        ("fr", "French"),
        ("es", "Spanish"),
        ("pt-BR", "Portuguese (Brazil)"),
    }


def test_a_vocabulary_with_gaps(checkpoint: Path) -> None:
    vocabulary = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
    del vocabulary["▁the"]
    (checkpoint / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")

    pack = build(checkpoint)

    tokenizer = Tokenizer(pack)
    assert tokenizer.encode("the")[0] == vocabulary["<unk>"]
    assert tokenizer.encode("day")[0] == vocabulary["▁day"]
    assert isinstance(Translator(pack, threads=1).translate(["the day"])[0], Translation)


@pytest.mark.parametrize(
    "changes",
    [
        {"share_encoder_decoder_embeddings": False},
        {"tie_word_embeddings": False},
        {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    ],
    ids=str,
)
def test_untied_embeddings(tmp_path: Path, changes: dict[str, Any]) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", STARTER, **changes)

    assert isinstance(Translator(build(checkpoint), threads=1).translate(["Good morning."])[0], Translation)


def test_a_target_vocabulary_of_its_own(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", STARTER, share_encoder_decoder_embeddings=False)
    config = json.loads((checkpoint / "config.json").read_text())
    target_vocabulary = json.loads((STARTER / "vocab.json").read_text("utf-8"))
    reversed_ids = {piece: len(target_vocabulary) - id_ for piece, id_ in target_vocabulary.items()}
    (checkpoint / "target_vocab.json").write_text(json.dumps(reversed_ids), "utf-8")
    config |= {"decoder_vocab_size": len(target_vocabulary) + 1, "decoder_start_token_id": 1, "bad_words_ids": [[1]]}
    config |= {"eos_token_id": len(target_vocabulary), "forced_eos_token_id": len(target_vocabulary)}
    (checkpoint / "config.json").write_text(json.dumps(config))
    save_file(random_weights(checkpoint), checkpoint / "model.safetensors")

    pack = build(checkpoint)

    pieces = (pack.path / "target_vocabulary.txt").read_text("utf-8").split("\n")
    assert pieces[-1] == "</s>"
    assert pack.generation.eos_token_id == len(pieces) - 1
    assert isinstance(Translator(pack, threads=1).translate(["Good morning."])[0], Translation)


def test_real_opus_mt_files_of_another_pair(tmp_path: Path) -> None:
    if not OPUS_FILES.is_dir():
        pytest.skip(f"{OPUS_FILES} is not there")
    pack = build(write_checkpoint(tmp_path / "checkpoint", OPUS_FILES / "opus-mt-en-mg"))

    assert (pack.source.code, pack.targets[0].code, pack.targets[0].name) == ("en", "mg", "Malagasy")
    assert isinstance(Translator(pack, threads=1).translate(["Good morning."])[0], Translation)
