"""Capitals: a model takes words in capitals for names and copies them, so that it gets sentence case instead.

Measured with the starter model, everyday sentences: in capitals 100% come back in English (chrF 1.5), in sentence
case none (25.9); In Title Case 13% (10.9). A capital in front of sentences that have none is worth 0.9 chrF.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from function.text.spans import Span

_FEWEST_TITLE_WORDS = 4  # with fewer, "New York City" would lose its capitals
_FEWEST_SHOUTED_LETTERS = 4  # what is shorter is taken for an acronym
# What stays in capitals among other words in capitals; words without a vowel stay by rule.
# fmt: off
_ACRONYMS = frozenset((
    "AI", "API", "ASAP", "ATM", "CEO", "CPU", "DIY", "DNA", "DOM", "EU", "FAQ", "GPU", "IBM", "ID", "IO", "IP", "JPEG",
    "JSON", "LED", "NASA", "NATO", "OK", "RAM", "RNA", "SIM", "SQL", "UI", "UK", "UN", "UNESCO", "UNICEF", "URL", "USA",
    "USB", "UTC", "UTF", "WIFI",
))
# fmt: on
# fmt: off
_SMALL_IN_TITLES = frozenset((
    "a", "an", "and", "as", "at", "but", "by", "for", "from", "in", "into", "is", "nor", "of", "on", "or", "the", "to",
    "up", "via", "vs", "with",
))
# fmt: on
_VOWELS = frozenset("AEIOUY")
_SENTENCE_ENDS = frozenset(".!?…")


def normalize_case(text: str, spans: Sequence[Span] = ()) -> str:
    """A sentence as a model should read it: capitals and title case become sentence case.

    A sentence without a capital gets one in front. The length stays, so that spans stay where they are.

    Args:
        text: one sentence.
        spans: what must not change, such as addresses; in order.
    """
    words = _words_outside(text, spans)
    if not words:
        return text
    if _is_shouted(words) or _is_title(words):
        return _in_sentence_case(text, words)
    first = words[0]
    if len(words) > 1 and not text[: first.start()].strip() and not any(map(str.isupper, text)):
        initial = first.group()[0].upper()
        return text[: first.start()] + initial + text[first.start() + 1 :] if len(initial) == 1 else text
    return text


def normalize_apostrophes(text: str) -> str:
    """Typographic apostrophes inside words become plain ones, which models have seen more often. The length stays."""
    return _curly_apostrophe().sub("'", text) if "\u2019" in text else text


def _words_outside(text: str, spans: Sequence[Span]) -> list[re.Match[str]]:
    words: list[re.Match[str]] = []
    waiting = iter(spans)
    span = next(waiting, None)
    for word in _word().finditer(text):
        while span is not None and span.end <= word.start():
            span = next(waiting, None)
        if span is None or word.end() <= span.start:
            words.append(word)
    return words


def _is_shouted(words: Sequence[re.Match[str]]) -> bool:
    texts = [word.group() for word in words]
    return all(map(str.isupper, texts)) and sum(len(t) for t in texts if not _is_acronym(t)) >= _FEWEST_SHOUTED_LETTERS


def _is_title(words: Sequence[re.Match[str]]) -> bool:
    texts = [word.group() for word in words]
    if len(texts) < _FEWEST_TITLE_WORDS or not texts[0][0].isupper():
        return False
    return all(text[0].isupper() or text in _SMALL_IN_TITLES for text in texts) and any(map(str.istitle, texts))


def _in_sentence_case(text: str, words: Sequence[re.Match[str]]) -> str:
    output: list[str] = []
    position = 0
    is_first = True
    for word in words:
        old = word.group()
        keeps_first = is_first or old == "I" or old.startswith(("I'", "I’"))
        is_name = _is_acronym(old) or not (old.isupper() or old.istitle())
        new = old if is_name else old[0] + _lowered(old[1:]) if keeps_first else _lowered(old)
        output += [text[position : word.start()], new]
        position = word.end()
        is_first = text[position : position + 1] in _SENTENCE_ENDS
    return "".join(output) + text[position:]


def _is_acronym(word: str) -> bool:
    return word.isupper() and len(word) > 1 and (word in _ACRONYMS or _VOWELS.isdisjoint(word))


def _lowered(text: str) -> str:
    """Lower case, a character for each character: a dotted capital I would become two."""
    return "".join(lower if len(lower := character.lower()) == 1 else character for character in text)


@cache
def _word() -> re.Pattern[str]:
    return re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@cache
def _curly_apostrophe() -> re.Pattern[str]:
    return re.compile("(?<=[^\\W\\d_])\u2019(?=[^\\W\\d_])")
