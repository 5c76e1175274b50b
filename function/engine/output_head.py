"""The output head of an 8-bit pack, which stands on disk as the embedding that shares its table wants it.

The product wants all of a feature's integers side by side; read from those, a token's embedding would touch a page
for each feature, and soon all of the file. The embedding wants all of a token's integers side by side; bytes that stand
so are slow to turn round. So eight neighbouring target ids share a row of 64-bit words, a word for each feature and in
it a byte for each id: a row is a page, and words turn ten times as fast as bytes.

The decoder computes the head in several products. What a batch gets from one stays in the processor's cache until its
scales and bias are on it; all of the logits of 16 rows would not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from function.engine.pack import ModelPack

OUTPUT_HEAD_FILE = "output_head.bin"  # only 8-bit packs whose head is an embedding, too, have it
WORD_TYPE = "<u8"
IDS_A_WORD = 8

_WORDS_A_PART = 1024  # of each feature
_WORDS_AT_ONCE = 64  # what is written of a feature at once is a few cache lines, what is read lies close together


def head_parts(words: int) -> dict[str, slice]:
    """The head's products, by name: which of so many words of each feature they have."""
    starts = range(0, words, _WORDS_A_PART)
    return {f"output_head.{number}": slice(start, start + _WORDS_A_PART) for number, start in enumerate(starts)}


def read_output_head(pack: ModelPack) -> dict[str, NDArray[np.int8]]:
    """The integers that the decoder is to be given [D features, target ids], by the names of its initializers.

    Empty for a pack whose decoder has them itself.
    """
    path = pack.path / OUTPUT_HEAD_FILE
    if not path.exists():
        return {}
    words: NDArray[Any] = np.memmap(path, WORD_TYPE, "r").reshape(-1, pack.network.d_model)  # [N / 8, D]
    return {f"{name}.weight": _turned(words[part]) for name, part in head_parts(len(words)).items()}


def _turned(words: NDArray[Any]) -> NDArray[np.int8]:
    """Words of D features a row -> integers of all ids a row [D, ids]"""
    turned = np.empty(words.shape[::-1], WORD_TYPE)
    for start in range(0, len(words), _WORDS_AT_ONCE):
        rows = slice(start, start + _WORDS_AT_ONCE)
        turned[:, rows] = words[rows].T
    return turned.view(np.int8)
