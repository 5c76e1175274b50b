"""Marks of Chinese typography that stand alone: comma, stop, colon, ellipsis, dash and their like.

Every rule asks what the mark touches. Quotation marks and spaces are looked through, so that a rule decides the
same before and after the others have done their work: setting a text twice changes nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Container

FULL_WIDTH = frozenset("，。、；：？！（）《》〈〉【】")
TITLES = frozenset("《》〈〉【】")  # Chinese punctuation that no rule makes
SPACES_AND_QUOTES = frozenset(" \"'“”‘’「」『』")

_PUNCTUATION = FULL_WIDTH | set("“”「」『』…—")
_MARKS = re.compile("[,.;:?!]+(?:[ \"'“”‘’「」『』]*+[,.;:?!]+)*+")
_BEFORE_MARKS = FULL_WIDTH | {"…"}
_AFTER_MARKS = TITLES | {"…"}
_TO_FULL_WIDTH = str.maketrans(",.;:?!", "，。；：？！")
_DOTS = r"(?:[.。](?: *[.。]){2,}|…)"
_ELLIPSIS = re.compile(f"{_DOTS}(?: *{_DOTS})*")
_AROUND_ELLIPSIS = SPACES_AND_QUOTES | set("()（）")
_DASH = r"(?<! ) *+(?:--|—)[-—]*+(?: +(?:--|—)[-—]*+)*+ *+"  # compiled when a text has one

_BOUNDS_OF_LATIN = TITLES | set('“”「」"（）')
_LATIN_SENTENCE = 5  # words: so many at the end of a Chinese text are a sentence of their own


# Functions, not character classes: to compile a class with a range of that length takes 2 ms of a cold start.
def is_han(character: str) -> bool:
    """Whether it is a Chinese character (an ideograph in Unicode's blocks of them); False for the empty string."""
    return (
        "\u3400" <= character <= "\u9fff"
        or character == "〇"
        or "\uf900" <= character <= "\ufaff"
        or "\U00020000" <= character <= "\U0003ffff"
    )


def is_chinese(character: str) -> bool:
    """Whether it is a Chinese character or Chinese punctuation; False for the empty string."""
    return is_han(character) or character in _PUNCTUATION


def has_han(text: str) -> bool:
    return any(map(is_han, text))


def before(text: str, start: int, skipped: Container[str]) -> str:
    """The nearest character before `start` that is not skipped; empty at the beginning of the text."""
    while start and text[start - 1] in skipped:
        start -= 1
    return text[start - 1 : start]


def after(text: str, end: int, skipped: Container[str]) -> str:
    """The nearest character from `end` on that is not skipped; empty at the end of the text."""
    while end < len(text) and text[end] in skipped:
        end += 1
    return text[end : end + 1]


def typeset_ellipses(text: str) -> str:
    """`...` at Chinese characters becomes the six dots of Chinese."""

    def replacement(match: re.Match[str]) -> str:
        left = before(text, match.start(), _AROUND_ELLIPSIS)
        right = after(text, match.end(), _AROUND_ELLIPSIS)
        return "……" if has_han(left + right) else match[0]

    return _ELLIPSIS.sub(replacement, text)


def typeset_dashes(text: str) -> str:
    """`--`, ` — ` and the `-- --` of United Nations documents become `——` between Chinese.

    A hyphen stays, and so does a single `—` without spaces, which links names and places.
    """
    if "--" not in text and "—" not in text:
        return text

    def replacement(match: re.Match[str]) -> str:
        start, end = match.span()
        is_between = is_chinese(text[start - 1 : start]) and is_chinese(text[end : end + 1])
        return "——" if is_between and match[0] != "—" else match[0]

    return re.sub(_DASH, replacement, text)


def typeset_marks(text: str, source: str) -> str:
    """Give `,` `.` `;` `:` `?` `!` their Chinese form where they touch Chinese.

    What the source has in the same place, such as the colon of `:name` or the mark of `Yahoo!`, is no punctuation.
    """

    def replacement(match: re.Match[str]) -> str:
        marks, (start, end) = match[0], match.span()
        left = before(text, start, SPACES_AND_QUOTES)
        right = after(text, end, SPACES_AND_QUOTES)
        is_at_chinese = is_han(right) or right in _AFTER_MARKS
        follower = text[end : end + 1]
        is_glued = follower not in SPACES_AND_QUOTES and follower != "" and not is_at_chinese
        if ".." in marks or (is_glued and (text[start - 1 : start] == " " or marks[-1] + follower in source)):
            return marks
        if is_han(left) or left in _BEFORE_MARKS:
            return marks if marks == "." and is_glued else marks.translate(_TO_FULL_WIDTH)
        if marks[-1] in ",;:":
            is_pause = is_at_chinese
        elif right:
            is_pause = marks[-1] != "." and is_at_chinese and not _goes_on_after(text[max(0, end - 4) : end], source)
        else:
            is_pause = left != "" and not ends_in_latin_sentence(text, end - 1)
        return marks[:-1] + marks[-1].translate(_TO_FULL_WIDTH) if is_pause else marks

    return _MARKS.sub(replacement, text)


def ends_in_latin_sentence(text: str, end: int) -> bool:
    """Whether text[:end] ends within a quotation, a sentence or an abbreviation that has its own punctuation."""
    start = end
    while start and text[start - 1] not in _BOUNDS_OF_LATIN and not is_han(text[start - 1]):
        start -= 1
    if start == end:
        return False
    point = text[end - 2 : end - 1]
    is_abbreviation = point == "." and text[end - 3 : end - 2].isalnum() and text[end - 1].isalpha()  # as in U.S.
    is_quoted = text[start - 1 : start] in ("“", "「", '"')
    return is_abbreviation or is_quoted or len(text[start:end].split()) >= _LATIN_SENTENCE


def _goes_on_after(word: str, source: str) -> bool:
    """Whether the source's sentence goes on after this word, as in `the Yahoo! portal`."""
    place = source.find(word)
    return place >= 0 and source[place + len(word) : place + len(word) + 2].lstrip()[:1].islower()
