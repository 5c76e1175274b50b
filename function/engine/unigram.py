"""Unigram segmentation with SentencePiece's own arithmetic, for texts where it decides between ties.

Segmentations of a repeated unit ("......", "ha ha ha ha") tie exactly: the same pieces in another
order. SentencePiece sums scores in float32 and `tokenizers` in float64, so rounding makes them pick
different ones. This is the float32 sum; it is slower, and only repetition needs it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

_REPETITION = re.compile(r"(.{1,8}?)\1{2}")
_FLOAT32 = struct.Struct("f")
_UNKNOWN_PENALTY = 10.0  # below the worst piece: SentencePiece's kUnkPenalty


def has_repetition(normalized: str) -> bool:
    """Whether some unit of up to eight characters stands three times in a row."""
    return _REPETITION.search(normalized) is not None


class UnigramModel:
    """Viterbi search over pieces and their log-probabilities.

    Args:
        pieces: (piece, score) pairs, without unknown and control pieces.
    """

    def __init__(self, pieces: Iterable[tuple[str, float]]) -> None:
        self._scores = {piece: _float32(score) for piece, score in pieces}
        self._longest = max(map(len, self._scores))
        self._unknown_score = _float32(min(self._scores.values()) - _UNKNOWN_PENALTY)

    def segment(self, normalized: str) -> list[str]:
        """The best pieces of a normalised text; neighbouring unknown characters are one piece."""
        length = len(normalized)
        best = [0.0] * (length + 1)
        starts = [-1] * (length + 1)
        unknown = [False] * (length + 1)
        for start in range(length):
            for end in range(start + 1, min(length, start + self._longest) + 1):
                score = self._scores.get(normalized[start:end])
                is_unknown = score is None
                if score is None:
                    if end > start + 1:
                        continue
                    score = self._unknown_score
                candidate = _float32(score + best[start])
                if starts[end] < 0 or candidate > best[end]:
                    best[end], starts[end], unknown[end] = candidate, start, is_unknown

        pieces: list[str] = []
        end, after_unknown = length, False
        while end > 0:
            start = starts[end]
            if unknown[end] and after_unknown:
                pieces[-1] = normalized[start:end] + pieces[-1]
            else:
                pieces.append(normalized[start:end])
            end, after_unknown = start, unknown[end]
        return pieces[::-1]


def _float32(value: float) -> float:
    (rounded,) = _FLOAT32.unpack(_FLOAT32.pack(value))
    return float(rounded)
