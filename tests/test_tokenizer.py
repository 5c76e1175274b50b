"""The tokenizer gives the ids that MarianTokenizer gives, and takes users' text as text."""

from __future__ import annotations

import hashlib
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from function.engine.charsmap import Charsmap
from function.engine.pack import ModelPack
from function.engine.tokenizer import Tokenizer
from function.engine.unigram import UnigramModel, pieces_stay_within_words
from model_pack.build import build_pack
from model_pack.tokenizer import read_spm
from tests.checkpoints import write_checkpoint
from tests.paths import CORPORA, OPUS_FILES, REFERENCES, SHARED, STARTER, sha256

SOURCES = {"starter": STARTER, "opus-mt-en-mg": OPUS_FILES / "opus-mt-en-mg"}


def reference(name: str) -> Any:
    return json.loads((REFERENCES / f"tokenizer-{name}.json").read_text())


@pytest.fixture(scope="module", params=SOURCES)
def name(request: pytest.FixtureRequest) -> str:
    if not SOURCES[request.param].is_dir():
        pytest.skip(f"{SOURCES[request.param]} is not there")
    return str(request.param)


@pytest.fixture(scope="module")
def tokenizer(name: str, int8_pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    if name == "starter":
        return Tokenizer(ModelPack.open(int8_pack))
    folder = tmp_path_factory.mktemp(name)
    checkpoint = write_checkpoint(folder / "checkpoint", SOURCES[name])
    build_pack(checkpoint, folder / "pack", None, say=lambda _: None)
    return Tokenizer(ModelPack.open(folder / "pack"))


def test_references_belong_to_these_files(name: str) -> None:
    assert reference(name)["provenance"]["checkpoint"]["vocab.json"] == sha256(SOURCES[name] / "vocab.json")


def test_tricky_texts_have_marian_ids(name: str, tokenizer: Tokenizer) -> None:
    tricky = reference(name)["tricky"]
    assert len(tricky) > 150
    assert {entry["text"]: tokenizer.encode(entry["text"]) for entry in tricky} == {
        entry["text"]: entry["ids"] for entry in tricky
    }


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_line_of_real_text_has_marian_ids(name: str, tokenizer: Tokenizer, corpus: str) -> None:
    if not (SHARED / corpus).is_file():
        pytest.skip(f"{SHARED / corpus} is not there")
    expected = reference(name)["corpora"][corpus]
    lines = (SHARED / corpus).read_text("utf-8").split("\n")

    digest = hashlib.sha256("\n".join(json.dumps(tokenizer.encode(line)) for line in lines).encode()).hexdigest()

    assert (len(lines), digest) == (expected["lines"], expected["ids_sha256"])


def repetitive_texts(seed: int) -> Iterator[str]:
    """Texts whose best segmentations differ by the rounding of their scores, or by nothing."""
    source = random.Random(seed)
    for _ in range(500):
        letters = source.choice(["ab", "abcdefghijklmnopqrstuvwxyz .!-=019", "ha 哈☃"])
        unit = "".join(source.choice(letters) for _ in range(source.randint(1, 8)))
        yield "x" * source.randint(0, 100) + unit * source.randint(1, 30)


def test_repetition_is_cut_as_sentencepiece_cuts_it(name: str, tokenizer: Tokenizer) -> None:
    processor = SentencePieceProcessor(model_file=str(SOURCES[name] / "source.spm"))
    vocabulary = json.loads((SOURCES[name] / "vocab.json").read_text("utf-8"))

    for text in [*repetitive_texts(seed=1), "ab" * 5_000, "a b" * 5_000]:
        pieces = processor.encode(text, out_type=str)
        assert tokenizer.encode(text) == [vocabulary.get(piece, vocabulary["<unk>"]) for piece in [*pieces, "</s>"]]


def test_pieces_that_reach_over_words_are_cut_as_sentencepiece_cuts_them(tmp_path: Path) -> None:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["how are you", "how is it", "are you how", "it is how it is"] * 50),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        split_by_whitespace=False,
        minloglevel=2,
    )
    (tmp_path / "source.spm").write_bytes(model.getvalue())
    spm = read_spm(tmp_path / "source.spm")
    pieces, scores = zip(*spm.pieces, strict=True)
    unigram = UnigramModel(pieces, scores, within_words=pieces_stay_within_words(pieces))
    charsmap = Charsmap(spm.charsmap, keeps_ascii=False)
    processor = SentencePieceProcessor(model_proto=model.getvalue())
    source = random.Random(1)

    assert not pieces_stay_within_words(pieces)
    for _ in range(500):
        text = " ".join(source.choice(["how", "are", "you", "is", "it", "who", "☃"]) for _ in range(20))
        assert unigram.segment(charsmap.normalize(text)) == processor.encode(text, out_type=str)


@pytest.mark.parametrize("text", ["a </s> b", "<unk>", "x <pad>", ">>cmn_Hans<< hello"])
def test_special_tokens_in_users_text_are_text(tokenizer: Tokenizer, text: str) -> None:
    instructions = {tokenizer.encode(token)[0] for token in ("</s>", "<pad>")}

    *ids, eos = tokenizer.encode_text(text)

    assert eos == tokenizer.encode("")[0]
    assert not instructions & set(ids)
    assert len(ids) > len(text.split())


def test_decode_joins_pieces_and_leaves_special_tokens_out(int8_pack: Path) -> None:
    pack = ModelPack.open(int8_pack)
    pieces = (int8_pack / "target_vocabulary.txt").read_text("utf-8").split("\n")
    first, second = [piece for piece in pieces if piece.isalpha()][:2]
    chosen = ["▁", "<pad>", first, "▁", "<unk>", second, "</s>"]

    text = Tokenizer(pack).decode([pieces.index(piece) for piece in chosen])

    assert text == f"{first} {second}"
