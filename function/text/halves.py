"""Halves of a segment, for a second attempt at translating it."""

from __future__ import annotations

import re

_CLAUSE_END = re.compile(r"[,;:]\"?\s+|\s[–—-]+\s+")
_SPACE = re.compile(r"\s+")
_SHORTEST_PART = 0.25  # of the segment: less is no clause to be translated by itself


def join(first: str, second: str) -> str:
    """One target of the targets of two halves: the sentence goes on where the first one ended."""
    for stop, comma in (("。", "，"), (".", ", ")):
        if first.endswith(stop):
            return first[: -len(stop)] + comma + second
    return first + second


def halves(segment: str) -> tuple[str, str] | None:
    """Cut a segment in two, after the clause that ends nearest its middle, else at the space nearest it.

    Returns:
        Both parts, which joined give the segment; None where there is no such place.
    """
    middle = len(segment) / 2
    for separator in (_CLAUSE_END, _SPACE):
        places = [match.end() for match in separator.finditer(segment)]
        places = [place for place in places if abs(place - middle) <= (0.5 - _SHORTEST_PART) * len(segment)]
        if places:
            place = min(places, key=lambda place: abs(place - middle))
            return segment[:place], segment[place:]
    return None
