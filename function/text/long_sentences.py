"""Cutting a sentence that is longer than what a model reads at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

_LOW_SURROGATES = ("\udc00", "\udfff")
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_LONGEST_CHARACTER = 32  # code points of what a reader sees as one character; longer heaps of marks may be cut


def split_long(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a sentence into parts that fit, balanced and at the best places; joined, they are the sentence.

    Args:
        text: one sentence.
        fits: whether the model can read a part; asked less than twice for each part that comes out.

    Returns:
        The parts. One character is a part even where it does not fit.
    """
    parts: list[str] = []
    waiting = [text]
    while waiting:
        part = waiting.pop()
        if len(part) < 2 or fits(part):
            parts.append(part)
        else:
            place = _best_place(part)
            waiting += [part[place:], part[:place]]
    return parts


def _best_place(text: str) -> int:
    """Where to cut: at the strongest pause in the middle third, the nearest to the middle."""
    middle = len(text) // 2
    for pattern, margin in _places():
        clear = max(1, len(text) // margin)
        matches = pattern.finditer(text, clear, len(text) - clear)
        places = [match.end() for match in matches if match.end() < len(text)]
        if places:
            return min(places, key=lambda place: abs(place - middle))
    for place in range(middle, min(middle + _LONGEST_CHARACTER, len(text))):
        if not _is_inside_character(text, place):
            return place
    return middle


def _is_inside_character(text: str, place: int) -> bool:
    """Whether a reader would see what is before and after as one character."""
    from unicodedata import category  # noqa: PLC0415 # text without spaces that is too long is rare

    before, after = text[place - 1], text[place]
    if after in _FLAG_LETTERS:  # two make a flag
        return (place - len(text[:place].rstrip(_FLAG_LETTERS))) % 2 == 1
    return (
        "\u200d" in (before, after)
        or category(after).startswith("M")
        or any(first <= after <= last for first, last in (_LOW_SURROGATES, _SKIN_TONES))
    )


@cache
def _places() -> tuple[tuple[re.Pattern[str], int], ...]:
    """Pauses, the strongest first, and what part of the text at either end they must keep clear of."""
    words = "and|or|but|nor|so|yet|because|although|though|while|when|where|which|who|if|unless|until|since|that"
    return (
        (re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]"), 3),
        (re.compile(r"[;:]\s+|[；：]|\s[-–]\s+|—"), 3),
        (re.compile(r"[,)\]]\s+|[，、）]"), 3),
        (re.compile(rf"(?<=\s)(?=(?:{words})\s)", re.IGNORECASE), 3),
        (re.compile(r"\s+"), 8),
    )
