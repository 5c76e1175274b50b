"""Chinese typography: what a copy editor would correct in a translation, and nothing else.

Models trained on web text and subtitles write `你好,世界` for `你好，世界`. Letters, digits and Chinese characters
stay as they are and in their order; only punctuation and spaces change, and only where they touch Chinese. The
rules follow GB/T 15834-2011, China's standard of punctuation, where it speaks of the case; each was kept because
it brings published outputs of opus-mt-en-zh nearer to human references, or is neutral there and right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from function.text.script import Script
from function.text.typography_marks import (
    FULL_WIDTH,
    ends_in_latin_sentence,
    has_han,
    is_chinese,
    is_han,
    typeset_dashes,
    typeset_ellipses,
    typeset_marks,
)
from function.text.typography_pairs import typeset_brackets, typeset_quotes, typeset_speech

# What stays as it is: code, tags, placeholders, addresses. Numbers, times, paths and identifiers need no entry:
# their punctuation stands between Latin characters, which no rule touches.
_KEPT = (  # compiled when a text may have some
    r"\ue000|`[^`\n]*`|</?[A-Za-z0-9][^<>]*>|\$?\{\{?[^{}]*\}?\}"
    r"|(?:https?|ftp|file)://(?:[!#-'*-;=?-_a-z~]|\([!#-'*-;=?-_a-z~]*\))*(?:[0-9A-Za-z_/#=&+~-]|\([!#-'*-;=?-_a-z~]*\))"
)
_KEPT_MARK = "\ue000"  # private use: stands for kept text, neither Chinese nor punctuation
_KEPT_SIGNS = frozenset("`<{:")

_SPACES = re.compile(" +")
_PAUSES = frozenset("，；：。？！")
_BOUNDARIES = FULL_WIDTH | set(" “”「」…—")
_ASCII_MARKS = frozenset(",.;:?!")
_CLAUSE = 5  # characters: what is shorter between two spaces is seldom a clause
_NO_PAUSE_AFTER = frozenset("的地得在和与或及对向被把从是为让使于由以比")

_GROUPED_BY_SPACES = re.compile(r"(?<![\d.,])(?<!\d )\d{1,3}(?: \d{3})+(?!\d)")
_END_MARKS = {".": "。", "?": "？", "!": "！"}
_CLOSING_QUOTES = "”’」』"

_HAN = "\u3400-\u9fff"
_LETTER = "0-9A-Za-z\u00c0-\u024f"
_BETWEEN_HAN_AND_LETTER = f"(?<=[{_HAN}]) *(?=[{_LETTER}])|(?<=[{_LETTER}%°]) *(?=[{_HAN}])"  # compiled when used


@dataclass(frozen=True)
class Style:
    """How Chinese is set.

    `script` decides the quotation marks: “‘ ’” for Hans, 「『 』」 for Hant. `spacing` is about spaces between
    Chinese characters and Latin letters or digits. Publishers disagree about them and BLEU and chrF do not see
    them, so that the model's habit is kept by default.
    """

    script: Script = "Hans"
    spacing: Literal["keep", "none", "space"] = "keep"


SIMPLIFIED = Style()


def typeset(target: str, source: str = "", style: Style = SIMPLIFIED) -> str:
    """Set one translated sentence by the rules of Chinese typography.

    Args:
        target: the translation. Without a Chinese character in it, it comes back as it is.
        source: what it was translated from. It tells how the sentence ends and what only looks like punctuation.
        style: quotation marks and spacing.

    Typesetting what was typeset before changes nothing.
    """
    if not has_han(target):
        return target
    text = target.strip(" ")
    kept: list[str] = []
    if not _KEPT_SIGNS.isdisjoint(text):
        text = re.sub(_KEPT, lambda match: _keep(match[0], kept), text)
    text = typeset_ellipses(text)
    text = typeset_brackets(text, source)
    text = typeset_quotes(text, style.script)
    text = typeset_marks(text, source)
    text = typeset_dashes(text)
    if " " in text:
        text = _group_digits(text, source)
        text = _SPACES.sub(_space, _pause(text))
    text = typeset_speech(text)
    text = _end(text, source)
    if style.spacing != "keep":
        text = re.sub(_BETWEEN_HAN_AND_LETTER, "" if style.spacing == "none" else " ", text)
    if kept:
        parts = text.split(_KEPT_MARK)
        text = "".join(part + span for part, span in zip(parts, [*kept, ""], strict=True))
    return text.join(target.split(target.strip(" "), 1))  # between the spaces that were around it


def _keep(text: str, kept: list[str]) -> str:
    kept.append(text)
    return _KEPT_MARK


def _group_digits(text: str, source: str) -> str:
    """`1 000`, the United Nations' way, becomes what the source has: `1,000` or `1000`."""

    def replacement(match: re.Match[str]) -> str:
        for separator in (",", ""):
            number = match[0].replace(" ", separator)
            if number in source:
                return number
        return match[0]

    return _GROUPED_BY_SPACES.sub(replacement, text)


def _pause(text: str) -> str:
    """Subtitles have spaces for punctuation: where a text has no mark at all, those between clauses become commas."""
    if not _PAUSES.isdisjoint(text):
        return text

    def replacement(match: re.Match[str]) -> str:
        start, end = match.span()
        clauses = text[max(0, start - _CLAUSE) : start], text[end : end + _CLAUSE]
        is_pause = (
            all(len(clause) == _CLAUSE and _BOUNDARIES.isdisjoint(clause) for clause in clauses)
            and is_han(text[start - 1])
            and is_han(text[end])
            and text[start - 1] not in _NO_PAUSE_AFTER
        )
        return "，" if is_pause else match[0]

    return _SPACES.sub(replacement, text)


def _space(match: re.Match[str]) -> str:
    """Chinese characters and punctuation need no spaces between them, and full-width marks none at all."""
    text, (start, end) = match.string, match.span()
    left, right = text[start - 1 : start], text[end : end + 1]
    is_needless = (
        (is_chinese(left) and is_chinese(right))
        or right in FULL_WIDTH
        or right in ("”", "」")
        or ((left in FULL_WIDTH or left in ("“", "「")) and right not in _ASCII_MARKS)
    )
    return "" if is_needless else match[0]


def _end(text: str, source: str) -> str:
    """A target that ends without a mark takes the one that ends its source."""
    sentence = source.rstrip(" \n\"'”’")
    mark = "……" if sentence.endswith(("...", "…")) else _END_MARKS.get(sentence[-1:])
    if mark is None:
        return text
    core = text.rstrip(_CLOSING_QUOTES)
    last = core[-1:]
    if not (last.isalnum() or last in ("%", "）", "》")) or (
        not has_han(last) and ends_in_latin_sentence(text, len(text))
    ):
        return text
    quotation_start = max(core.rfind("“"), core.rfind("「"))
    is_quoted_sentence = core != text and has_han(last) and (quotation_start == 0 or text[quotation_start - 1] == "：")
    return core + mark + text[len(core) :] if is_quoted_sentence else text + mark
