"""Marian's tokenizer: text -> source ids, target ids -> text.

Marian keeps two things apart that most tokenizers join: source.spm cuts text into pieces, and a
vocabulary with ids of its own gives each piece its id *by string*. A character that source.spm does
not know may still be a piece of the vocabulary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import tokenizers

from function.engine.charsmap import SPACE_MARK, Charsmap
from function.engine.pack import ModelPack
from function.engine.unigram import UnigramModel, has_repetition

UNIGRAM_FILE = "unigram.json"
CHARSMAP_FILE = "charsmap.bin"
SOURCE_VOCABULARY_FILE = "source_vocabulary.txt"
TARGET_VOCABULARY_FILE = "target_vocabulary.txt"

_LANGUAGE_CODE = re.compile(r">>.*?<<", re.DOTALL)


class Tokenizer:
    """The tokenizer of one pack.

    `encode_text` is for what users write: in it `</s>` and `>>xyz<<` are text. `encode` follows
    MarianTokenizer to the letter, where both are instructions.
    """

    def __init__(self, pack: ModelPack) -> None:
        self._unigram_path = pack.path / UNIGRAM_FILE
        self._unigram = tokenizers.Tokenizer.from_file(str(self._unigram_path))
        # It would keep the last 10,000 texts and their pieces: some 50 MB that a text seldom comes back for.
        self._unigram.model._resize_cache(0)
        self._charsmap = Charsmap.load(pack.path / CHARSMAP_FILE, keeps_ascii=pack.tokenizer["keeps_ascii"])
        self._source_ids = {piece: id_ for id_, piece in enumerate(_lines(pack.path / SOURCE_VOCABULARY_FILE))}
        self._target_pieces = _lines(pack.path / TARGET_VOCABULARY_FILE)
        self._eos, self._unk, pad = (pack.tokenizer[name] for name in ("eos_token", "unk_token", "pad_token"))
        self._special_tokens = (self._eos, self._unk, pad)
        self._special_token = re.compile("(" + "|".join(map(re.escape, self._special_tokens)) + ")")

    def encode_text(self, text: str, language_token: str | None = None) -> list[int]:
        """Source ids of a text of which every character is text, after the language token if there is one; eos last."""
        return self._ids([*([language_token] if language_token else []), *self._pieces(text)])

    def encode(self, text: str) -> list[int]:
        """Source ids as MarianTokenizer gives them, eos last.

        Literal special tokens stay whole, and a leading `>>code<<` (also one right after a special
        token) is one token.
        """
        pieces: list[str] = []
        for part in self._special_token.split(text):
            if part in self._special_tokens:
                pieces.append(part)
            elif code := _LANGUAGE_CODE.match(part):
                pieces.append(code.group())
                pieces += self._pieces(part[code.end() :])
            else:
                pieces += self._pieces(part)
        return self._ids(pieces)

    def decode(self, target_ids: Sequence[int]) -> str:
        """The text of target ids, special tokens left out."""
        pieces = (self._target_pieces[id_] for id_ in target_ids)
        return "".join(p for p in pieces if p not in self._special_tokens).replace(SPACE_MARK, " ").strip()

    def target_pieces(self, target_ids: Sequence[int]) -> list[str]:
        """The pieces that target ids stand for, special tokens included."""
        return [self._target_pieces[id_] for id_ in target_ids]

    def _ids(self, pieces: list[str]) -> list[int]:
        unk = self._source_ids[self._unk]
        return [self._source_ids.get(piece, unk) for piece in pieces] + [self._source_ids[self._eos]]

    def _pieces(self, text: str) -> list[str]:
        normalized = self._charsmap.normalize(text)
        if not normalized:
            return []
        if has_repetition(normalized):
            return self._exact_unigram.segment(normalized)
        return self._unigram.encode(normalized, add_special_tokens=False).tokens

    @cached_property
    def _exact_unigram(self) -> UnigramModel:
        model = json.loads(self._unigram_path.read_text("utf-8"))["model"]
        return UnigramModel(entry for index, entry in enumerate(model["vocab"]) if index != model["unk_id"])


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")
