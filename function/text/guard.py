"""Translations that went wrong, found by what they look like: no model and no reference are asked.

Thresholds come from 9,000 pairs of English and human Chinese (FLORES-200 dev, NTREX-128, TICO-19, the
starter's held-out sets), 0.4% of which are flagged, and from the published outputs of opus-mt-en-zh on
FLORES-200 dev.
"""

from __future__ import annotations

import re
from enum import StrEnum

# A character three times, a unit of 2 to 20 three times, or one of 6 to 60 twice. The look-ahead passes over most
# places, those whose next two characters do not come again soon; every quantifier is bounded: linear time.
_REPEAT = re.compile(r"(.)\1\1+|(?=(..).{0,58}\2)(?:(.{2,20}?)\3\3+|(.{6,60}?)\4+)", re.DOTALL)
_DOUBLED_WORD = r"(?i)\b([^\W\d_]{2,20}?)(?:\W*\1)+\b|([^\W\d_])\2\2"  # "no, no", "haha", "nooo"; compiled if needed
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")
_LOWER_CASE_WORD = re.compile(r"(?<![\w.@/:-])[a-z]{2,}(?![\w@/:-]|\.\w)")  # no part of a URL, a path or an identifier
_PLAIN_RUN = 12  # characters: "www", "1000000" and "......" are no loops, a longer run of such is one

_OPEN_ENDS = ",;([{，；、（［｛《〈「『【—–-"  # no colon: Chinese announces a list with one where English has a stop
_QUOTES = "\"'“”‘’"  # typists put an opening one at the end, too
_CLOSERS = _QUOTES + "」』)）]］ "
_JUDGED_SOURCE = 60  # characters: below this, a good translation may be of any length
_SHORTEST = 0.17  # target characters for one of source; 99.8% of the human translations have more
_COPIED_SHARE = 0.5  # of the source's lower-case words


class Quality(StrEnum):
    """How far a translation can be trusted."""

    OK = "ok"
    RECOVERED = "recovered"  # a problem was found, and a retry was without it
    SUSPECT = "suspect"  # a problem was found, and no retry was without it


class Problem(StrEnum):
    """What is wrong with a translation; the value is the reason that callers are given."""

    EMPTY = "empty"
    LOOP = "loop"
    MAX_LENGTH = "max_length"
    COPIED = "copied"
    EARLY_STOP = "early_stop"
    SCRIPT = "wrong_script"  # the characters are those of the other Chinese script


def inspect(source: str, target: str, *, ended: bool = True) -> Problem | None:
    """The problem of one segment's translation, the gravest if there are several; None if it looks sound.

    Linear in the length of the texts.

    Args:
        source: the segment as it was given to the model.
        target: the model's text before any typography: a comma at its end tells that decoding stopped early.
        ended: whether the model itself chose to end; False when `max_length` ended it.
    """
    letters = "".join(target.split())
    if not any(map(str.isalnum, letters)):
        return Problem.EMPTY if any(map(str.isalpha, source)) else None
    if _has_loop(source, letters):
        return Problem.LOOP
    if not ended:
        return Problem.MAX_LENGTH
    if _is_copied(source, target):
        return Problem.COPIED
    if _stops_early(source, letters):
        return Problem.EARLY_STOP
    return None


def _has_loop(source: str, letters: str) -> bool:
    """Whether something is said over and over that the source does not repeat."""
    runs = [match[0] for match in _REPEAT.finditer(letters) if _is_odd(match)]
    if not runs:
        return False
    longest = max(runs, key=len)
    if longest.lower() in "".join(source.split()).lower():
        return False
    return len(longest) > len(source) or not re.search(_DOUBLED_WORD, source)


def _is_odd(repeat: re.Match[str]) -> bool:
    unit = repeat[1] or repeat[3] or repeat[4]
    is_plain = not any(map(str.isalpha, unit)) or (len(unit) == 1 and unit.isascii())
    return not is_plain or len(repeat[0]) >= _PLAIN_RUN


def _is_copied(source: str, target: str) -> bool:
    """Whether most words that have a translation stand in the target as they were, with little else beside them."""
    translatable = set(_LOWER_CASE_WORD.findall(source))
    if not translatable:
        words = _LATIN_WORD.findall(source)
        if len(words) >= 4 and not any(map(str.islower, words)):  # capitals: fewer may be a name
            translatable = {word.lower() for word in words}
    kept = translatable.intersection(_LATIN_WORD.findall(target.lower()))
    if len(kept) <= _COPIED_SHARE * len(translatable):
        return False
    return sum(not letter.isascii() and letter.isalpha() for letter in target) < len(kept)


def _stops_early(source: str, letters: str) -> bool:
    if letters.rstrip(_QUOTES)[-1:] in _OPEN_ENDS and source.rstrip(_CLOSERS)[-1:] not in _OPEN_ENDS:
        return True
    return len(source) >= _JUDGED_SOURCE and len(letters) < _SHORTEST * len(source)
