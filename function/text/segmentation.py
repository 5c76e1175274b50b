"""Cutting texts into sentences, which are translated, and all that stands between them, which stays.

Sentence ends are sentencex's (https://github.com/wikimedia/sentencex), but for those inside an address or a dotted
name, or before what an abbreviation belongs to.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise

from function.text.pieces import Piece
from function.text.spans import EMOJI, NUMBER, Span, find_spans

# Letters of Chinese, and of Japanese and Korean, which an English model cannot read either.
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_STOPS = ".!?…。！？．｡‼⁇⁈⁉"
_CLOSERS = "\"'”’»)]}）」』》 "
# What sentencex ends a sentence after, although a number or a word of the same sentence follows.
# fmt: off
_ABBREVIATIONS = frozenset((
    "vs.", "no.", "nos.", "approx.", "est.", "fig.", "figs.", "al.", "cf.", "ca.", "p.", "pp.", "resp.", "ver.", "vol.",
    "ch.", "sec.", "eq.",
))
# fmt: on
_FEWEST_WORDS = 3  # before an emoji and a capital: "I ❤ New York" is one sentence
_FULL_LINE = 40  # characters: shorter lines were hardly broken at a margin, they are headings or verse


def split(text: str, *, unwrap: bool = False) -> list[Piece]:
    """Cut a text into pieces; joined, they are the text.

    Lines, indentation, list markers, tabs and the white space between sentences stay as they are, and so does what
    has nothing to translate in it.

    Args:
        text: any text.
        unwrap: whether lines that look broken at a margin are one paragraph; a sentence may then hold line breaks.
    """
    pieces: list[Piece] = []
    for line, ending in _unwrapped_lines(text) if unwrap else _lines(text):
        for cell in _cells().findall(line):
            pieces += _pieces_of(cell)
        pieces.append(Piece(ending, False))
    return list(_merged(pieces))


def has_nothing_to_translate(text: str) -> bool:
    """Whether a text can only come back as it is: no letters outside of addresses and the like, or Chinese already.

    Chinese is what has at least as many Chinese characters as letters in words that are not all in capitals.
    """
    if not any(map(str.isalpha, text)):
        return True
    rest: list[str] = []
    position = 0
    for span in find_spans(text):
        if span.kind != NUMBER:  # IE11
            rest.append(text[position : span.start])
            position = span.end
    remaining = " ".join([*rest, text[position:]])
    if remaining.isascii():
        return not any(map(str.isalpha, remaining))
    chinese = len(_chinese().findall(remaining))
    others = [word for word in _words().findall(remaining) if not (chinese and word.isupper())]
    return sum(map(len, others)) <= chinese


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Lines and their endings."""
    for line in text.splitlines(keepends=True):
        (content,) = line.splitlines()
        yield content, line[len(content) :]


def _unwrapped_lines(text: str) -> Iterator[tuple[str, str]]:
    """Paragraphs and their endings, where lines look broken at a margin; other lines alone."""
    paragraph: list[str] = []
    last, last_ending = "", ""
    for content, ending in _lines(text):
        if paragraph and not _goes_on(last, last_ending, content):
            yield "".join(paragraph), last_ending
            paragraph = []
        paragraph += [last_ending, content] if paragraph else [content]
        last, last_ending = content, ending
    if paragraph:
        yield "".join(paragraph), last_ending


def _goes_on(line: str, ending: str, following: str) -> bool:
    """Whether a line was broken at a margin and the next one belongs to it."""
    if not line.strip() or ending not in ("\n", "\r\n") or _marker().match(following).end():  # type: ignore[union-attr]
        return False
    is_full = len(line) >= _FULL_LINE and not line.rstrip().endswith(":")
    return following[:1].islower() or (is_full and following[:1].strip() != "")


def _pieces_of(cell: str) -> Iterator[Piece]:
    """A line, or a part of one between tabs: marker, sentences, white space."""
    start = _marker().match(cell).end()  # type: ignore[union-attr] # it matches nothing, too
    body = cell[start:].rstrip()
    if has_nothing_to_translate(body):
        yield Piece(cell, False)
        return
    yield Piece(cell[:start], False)
    sentences = _sentences(body)
    for sentence in sentences:
        core = sentence.strip()
        if len(sentences) > 1 and has_nothing_to_translate(core):
            yield Piece(sentence, False)
        else:
            lead = sentence[: sentence.index(core)]
            yield from (Piece(lead, False), Piece(core, True), Piece(sentence[len(lead) + len(core) :], False))
    yield Piece(cell[start + len(body) :], False)


def _sentences(text: str) -> list[str]:
    """The sentences of a line; joined, they are the line. An emoji between two sentences is one, too."""
    is_one = not any(stop in text.rstrip(_STOPS + _CLOSERS) for stop in _STOPS)
    if is_one and text.isascii():
        return [text]
    spans = find_spans(text)
    ends = [] if is_one else [end for end in _sentence_ends(text) if _is_end(text, end, spans)]
    for span in spans:
        if span.kind == EMOJI and _stands_between_sentences(text, span):
            ends += [span.start, span.end]
    bounds = sorted({0, *ends, len(text)})
    return [text[start:end] for start, end in pairwise(bounds)]


def _sentence_ends(text: str) -> Iterator[int]:
    """Where sentencex ends sentences, white space after them included."""
    from sentencex import segment  # noqa: PLC0415 # many a request is one sentence and needs no more

    try:
        sentences = segment("en", text)
    except UnicodeEncodeError:  # a lone surrogate: any other character without a meaning is as long
        sentences = segment("en", re.sub("[\ud800-\udfff]", "\ufffd", text))
    yield from accumulate(map(len, sentences))


def _is_end(text: str, end: int, spans: Sequence[Span]) -> bool:
    before, after = text[max(0, end - 64) : end].rstrip(), text[end : end + 1]
    inside = bisect_left(spans, end, key=lambda span: span.start) - 1  # the last span that starts before
    if inside >= 0 and end < spans[inside].end:
        return False
    if before[-1:] in ("!", "?") and after.islower():  # Yahoo! is one sentence
        return False
    if before.endswith(".") and not text[end - 1].isspace() and after.isalnum():
        return False
    last_word = before[-8:].rpartition(" ")[2].lower().lstrip("(")
    return last_word not in _ABBREVIATIONS or not (after.isdigit() or after.islower() or last_word == "vs.")


def _stands_between_sentences(text: str, emoji: Span) -> bool:
    before, after = text[max(0, emoji.start - 64) : emoji.start], text[emoji.end : emoji.end + 64]
    if not before[-1:].isspace() or not after[:1].isspace():
        return False
    ends_sentence = before.rstrip()[-1:] in tuple(_STOPS)
    return ends_sentence or (after.lstrip()[:1].isupper() and len(before.split()) >= _FEWEST_WORDS)


def _merged(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces without empty ones, neighbours that stay as they are being one."""
    staying: list[str] = []
    for piece in pieces:
        if not piece.translatable:
            staying.append(piece.text)
            continue
        if any(staying):
            yield Piece("".join(staying), False)
        staying = []
        yield piece
    if any(staying):
        yield Piece("".join(staying), False)


@cache
def _cells() -> re.Pattern[str]:
    return re.compile(r"\t+|[^\t]+")


@cache
def _marker() -> re.Pattern[str]:
    """Indentation and markers of lists, headings and quotations in front of a line."""
    return re.compile(
        r"\s*+(?:(?:[-*+•◦‣▪●○■□–—·]|[0-9]{1,3}[.)]|[A-Za-z]\)|\([0-9A-Za-z]{1,4}\)|（[0-9A-Za-z]{1,4}）"
        r"|\[[ xX]\]|#{1,6}|>+|[①-⑳])\s++)*+"
    )


@cache
def _chinese() -> re.Pattern[str]:
    return re.compile(f"[{_CJK}]")


@cache
def _words() -> re.Pattern[str]:
    """Words in other scripts than those of `_CJK`."""
    return re.compile(rf"[^\W\d_{_CJK}]+")
