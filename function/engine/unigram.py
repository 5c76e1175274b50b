"""Unigram segmentation with SentencePiece's own arithmetic.

SentencePiece sums scores in float32. Segmentations of a repeated unit ("......", "ha ha ha ha") are the
same pieces in another order, and only the rounding of each sum decides between them; so every sum here
is rounded where SentencePiece rounds it. (Beyond some 30,000 characters, 50 times what a model reads at
once, sentencepiece 0.2.3 keeps more of the sum than that, and a few pieces may differ.)
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import groupby

from function.engine.charsmap import SPACE_MARK

_UNKNOWN_PENALTY = 10.0  # below the worst piece: SentencePiece's kUnkPenalty


class UnigramModel:
    """Viterbi search over pieces and their log-probabilities.

    Args:
        pieces: without unknown and control pieces, and without empty ones.
        scores: one for each piece, float32 values.
        within_words: whether every piece has U+2581 only in front, if at all (`pieces_stay_within_words`).
    """

    def __init__(self, pieces: Sequence[str], scores: Sequence[float], *, within_words: bool) -> None:
        self._scores = dict(zip(pieces, scores, strict=True))
        self._longest = max(map(len, pieces))
        (self._unknown_score,) = array("f", [min(scores) - _UNKNOWN_PENALTY])
        self._within_words = within_words
        # The starts of the pieces that may end at each position; further on, they depend on the longest piece.
        self._starts = [range(end) for end in range(self._longest + 1)]

    def segment(self, normalized: str) -> list[str]:
        """The best pieces of a normalised text; neighbouring unknown characters are one piece."""
        # Where no piece reaches into the next word, each is a search of its own: fewer stretches come into question.
        words = _words(normalized) if self._within_words else [normalized]
        # Assigning to it is what rounds: the exact sum of two float32 values, once, to the nearest even.
        rounded = array("f", [0.0])
        pieces: list[str] = []
        has_unknown = False
        score_before = 0.0
        score_of, starts_of, longest = self._scores.get, self._starts, self._longest
        for word in words:
            best = [score_before]
            best_start = [0]
            for end in range(1, len(word) + 1):
                best_here, start_here = -math.inf, 0
                score = None
                for start in starts_of[end] if end <= longest else range(end - longest, end):
                    score = score_of(word[start:end])
                    if score is not None:
                        candidate = score + best[start]
                        # Rounding keeps order, so what is not greater before it is not greater after it.
                        if candidate > best_here:
                            rounded[0] = candidate
                            candidate = rounded[0]
                            if candidate > best_here:
                                best_here, start_here = candidate, start
                if score is None:  # the last, of the character alone
                    has_unknown = True
                    rounded[0] = self._unknown_score + best[end - 1]
                    if rounded[0] > best_here:
                        best_here, start_here = rounded[0], end - 1
                best.append(best_here)
                best_start.append(start_here)
            score_before = best[-1]
            pieces += _pieces(word, best_start)
        return self._with_unknown_joined(pieces) if has_unknown else pieces

    def _with_unknown_joined(self, pieces: list[str]) -> list[str]:
        runs = groupby(pieces, self._scores.__contains__)
        return [piece for is_known, run in runs for piece in (run if is_known else ("".join(run),))]


def pieces_stay_within_words(pieces: Iterable[str]) -> bool:
    """Whether no piece reaches over the border between two words."""
    return not any(SPACE_MARK in piece[1:] for piece in pieces)


def _words(normalized: str) -> list[str]:
    """The text cut before every U+2581."""
    first, *others = normalized.split(SPACE_MARK)
    words = [SPACE_MARK + other for other in others]
    return [first, *words] if first else words


def _pieces(word: str, best_start: list[int]) -> list[str]:
    """Follow the best starts back from the end of the word."""
    pieces = []
    end = len(word)
    while end:
        start = best_start[end]
        pieces.append(word[start:end])
        end = start
    return pieces[::-1]
