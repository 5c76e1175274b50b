"""Marian's tokenizer: text -> source ids, target ids -> text.

Marian keeps two things apart that most tokenizers join: source.spm cuts text into pieces, and a
vocabulary with ids of its own gives each piece its id *by string*. A character that source.spm does
not know may still be a piece of the vocabulary.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from function.engine.charsmap import SPACE_MARK, Charsmap
from function.engine.lines import Lines
from function.engine.pack import ModelPack
from function.engine.unigram import UnigramModel

CHARSMAP_FILE = "charsmap.bin"
# The pieces of source.spm in its order, and after them the rest of the vocabulary, by code point, for bisection.
SOURCE_VOCABULARY_FILE = "source_vocabulary.txt"
SOURCE_IDS_FILE = "source_ids.bin"  # one for each line of it
SOURCE_SCORES_FILE = "source_scores.bin"  # one for each piece of source.spm
TARGET_VOCABULARY_FILE = "target_vocabulary.txt"  # the line of a piece is its id

ID_TYPE = "<u4"
SCORE_TYPE = "<f4"

_LANGUAGE_CODE = re.compile(r">>.*?<<", re.DOTALL)


class Tokenizer:
    """The tokenizer of one pack.

    `encode_text` is for what users write: in it `</s>` and `>>xyz<<` are text. `encode` follows
    MarianTokenizer to the letter, where both are instructions.
    """

    def __init__(self, pack: ModelPack) -> None:
        self._charsmap = Charsmap.load(pack.path / CHARSMAP_FILE, keeps_ascii=pack.tokenizer["keeps_ascii"])
        scores = np.fromfile(pack.path / SOURCE_SCORES_FILE, SCORE_TYPE).tolist()
        self._source_vocabulary = Lines(pack.path / SOURCE_VOCABULARY_FILE)
        self._source_ids = np.fromfile(pack.path / SOURCE_IDS_FILE, ID_TYPE)
        source_pieces = self._source_vocabulary.head(len(scores))
        self._unigram = UnigramModel(source_pieces, scores, within_words=pack.tokenizer["pieces_stay_within_words"])
        self._piece_ids = dict(zip(source_pieces, self._source_ids[: len(scores)].tolist(), strict=True))
        self._target_pieces = Lines(pack.path / TARGET_VOCABULARY_FILE)
        self._eos_id: int = pack.tokenizer["source_eos_id"]
        self._unk_id: int = pack.tokenizer["source_unk_id"]
        self._special_tokens = tuple(pack.tokenizer[name] for name in ("eos_token", "unk_token", "pad_token"))
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
        return [*map(self._id, pieces), self._eos_id]

    def _id(self, piece: str) -> int:
        id_ = self._piece_ids.get(piece)
        return self._id_of_other(piece) if id_ is None else id_

    def _id_of_other(self, piece: str) -> int:
        """The id of what is no piece of source.spm: a special token, a language token, unknown characters."""
        line = bisect_left(self._source_vocabulary, piece, lo=len(self._piece_ids))
        if line < len(self._source_vocabulary) and self._source_vocabulary[line] == piece:
            return int(self._source_ids[line])
        return self._unk_id

    def _pieces(self, text: str) -> list[str]:
        normalized = self._charsmap.normalize(text)
        return self._unigram.segment(normalized) if normalized else []
