"""The tokenizer against MarianTokenizer, on real text and on 20,000 strings made to break it."""

from __future__ import annotations

import json
import random
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor
from transformers import MarianTokenizer

from function.engine.pack import ModelPack
from function.engine.tokenizer import Tokenizer
from model_pack.build import build_pack
from tests.checkpoints import write_checkpoint
from tests.export.references import TRICKY
from tests.paths import CORPORA, OPUS_FILES, SHARED, STARTER, held_out

FUZZED_STRINGS = 20_000


def assigned_characters() -> list[str]:
    """Every assigned character of the first three planes, surrogates left out."""
    codes = (code for code in range(0x20, 0x30000) if not 0xD800 <= code < 0xE000)
    return [chr(code) for code in codes if unicodedata.category(chr(code)) != "Cn"]


def fuzzed_strings(seed: int) -> Iterator[str]:
    """Sentences with odd things inserted, rows of odd things, rows of random characters."""
    source = random.Random(seed)
    sentences = [row["en"] for row in held_out("test_docs")]
    characters = assigned_characters()
    for _ in range(FUZZED_STRINGS):
        kind = source.random()
        if kind < 0.4:
            parts = source.choice(sentences).split(" ")[: source.randint(1, 20)]
            for _ in range(source.randint(1, 5)):
                parts.insert(source.randint(0, len(parts)), source.choice(TRICKY))
            yield source.choice(["", " ", "  "]).join(parts)
        elif kind < 0.6:
            yield "".join(source.choice(TRICKY) for _ in range(source.randint(0, 8)))
        elif kind < 0.8:
            yield "".join(source.choice(characters) for _ in range(source.randint(1, 12)))
        else:
            letters = list(source.choice(sentences)[:120])
            for _ in range(source.randint(1, 6)):
                letters.insert(source.randint(0, len(letters)), source.choice(characters))
            yield "".join(letters)


def write_opus_mt_en_zh(folder: Path) -> Path:
    """The real source.spm, of which no vocabulary is at hand: its own pieces make one."""
    folder.mkdir()
    source = OPUS_FILES / "opus-mt-en-zh"
    for name in ("source.spm", "target.spm"):
        shutil.copy(source / "source.spm", folder / name)
    shutil.copy(source / "config.json", folder / "config.json")
    processor = SentencePieceProcessor(model_file=str(source / "source.spm"))
    pieces = [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]
    vocabulary = {piece: id_ for id_, piece in enumerate(dict.fromkeys(["</s>", "<unk>", *pieces]))}
    vocabulary["<pad>"] = 65000
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    (folder / "tokenizer_config.json").write_text('{"source_lang": "eng", "target_lang": "zho"}')
    return folder


@pytest.fixture(scope="module", params=["starter", "opus-mt-en-mg", "opus-mt-en-zh"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, MarianTokenizer]:
    if request.param != "starter" and not OPUS_FILES.is_dir():
        pytest.skip(f"{OPUS_FILES} is not there")
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "opus-mt-en-zh":
        files = write_opus_mt_en_zh(folder / "files")
    else:
        files = {"starter": STARTER, "opus-mt-en-mg": OPUS_FILES / "opus-mt-en-mg"}[request.param]
    build_pack(write_checkpoint(folder / "checkpoint", files), folder / "pack", None, say=lambda _: None)
    return Tokenizer(ModelPack.open(folder / "pack")), MarianTokenizer.from_pretrained(folder / "checkpoint")


@pytest.mark.parametrize("corpus", CORPORA)
def test_real_text(pair: tuple[Tokenizer, MarianTokenizer], corpus: str) -> None:
    if not (SHARED / corpus).is_file():
        pytest.skip(f"{SHARED / corpus} is not there")
    ours, marian = pair

    differing = [
        line for line in (SHARED / corpus).read_text("utf-8").split("\n") if ours.encode(line) != marian(line).input_ids
    ]

    assert differing == []


@pytest.mark.parametrize("seed", [1, 2])
def test_fuzzed_strings(pair: tuple[Tokenizer, MarianTokenizer], seed: int) -> None:
    ours, marian = pair

    differing = [text for text in fuzzed_strings(seed) if ours.encode(text) != marian(text).input_ids]

    print(f"{len(differing)} of {FUZZED_STRINGS} fuzzed strings differ")
    assert differing == []


def test_decoded_text(pair: tuple[Tokenizer, MarianTokenizer]) -> None:
    ours, marian = pair
    vocabulary = marian.get_vocab()
    source = random.Random(3)
    target_pieces = ours.target_pieces(range(len(ours._target_pieces)))
    differing = []
    for _ in range(5_000):
        ids = [source.randrange(len(target_pieces)) for _ in range(source.randint(0, 15))]
        expected = marian.decode([vocabulary[target_pieces[id_]] for id_ in ids], skip_special_tokens=True)
        if ours.decode(ids) != expected:
            differing.append(ids)

    assert differing == []
