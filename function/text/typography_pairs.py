"""Marks of Chinese typography that come in pairs: brackets and quotation marks."""

from __future__ import annotations

import re

from function.text.script import Script
from function.text.typography_marks import SPACES_AND_QUOTES, TITLES, after, before, has_han, is_han

_BRACKET = re.compile(r"[()（）]")
_CODE = frozenset("_=*\\|$&")
_CODE_LENGTH = 60  # characters: what is longer is prose
_AROUND_BRACKETS = SPACES_AND_QUOTES | set(",.;:?!，。、；：？！…—-")

_QUOTE = re.compile('["“”]')
# Patterns that few texts need are compiled when one does: compiling is slow, and part of every cold start.
_QUOTATION = "“[^“”]*”"
_STRAIGHT_SINGLE = r"[“”]|(?<![0-9A-Za-z'])'([^'\"“”]*)'(?![0-9A-Za-z'])"
_CURLY_SINGLE = "‘([^‘’『』]*)’"
_AROUND_QUOTES = frozenset(" ,.;:?!，。、；：？！…—-()（）")
_SPEECH = "(?<=[说道称问答写示出调释])，(?=[“「]([^“”「」]*)((?:.|\\n)?(?:.|\\n)?))"
_CLAUSE_MARKS = frozenset("，。；？！…")


def typeset_brackets(text: str, source: str) -> str:
    """Pairs of brackets become full-width where they hold or touch Chinese; `f(x)`, `(*p)` and the like stay."""
    if "(" not in text and ")" not in text:
        return text
    characters = list(text)
    openings: list[int] = []
    last_han = -1  # a bracket with a Chinese character between it and the one before
    previous = 0
    for match in _BRACKET.finditer(text):
        start, end = openings[-1] if openings else 0, match.start()
        if has_han(text[previous:end]):
            last_han = end
        previous = end
        if match[0] in "(（":
            openings.append(end)
        elif openings:
            openings.pop()
            is_half_set = text[start] == "（" or text[end] == "）"
            if last_han > start or is_half_set or _touches_chinese(text, start, end, source):
                characters[start], characters[end] = "（", "）"
    return "".join(characters)


def typeset_quotes(text: str, script: Script) -> str:
    """Give quotations in Chinese the marks of the script, “‘ ’” or 「『 』」. Those of inches, code and Latin stay."""
    if "「" in text or "」" in text:
        text = text.replace("「", "“").replace("」", "”")
    if '"' in text:
        text = _pair(re.sub(_QUOTATION, _nest, text))
    if "'" in text:
        text = _pair_single(text)
    if script == "Hant":
        text = re.sub(_CURLY_SINGLE, lambda match: f"『{match[1]}』" if has_han(match[1]) else match[0], text)
        return text.replace("“", "「").replace("”", "」")
    return text.replace("『", "‘").replace("』", "’")


def typeset_speech(text: str) -> str:
    """The comma between a verb of saying and what is said becomes a colon; before a mere word in quotes it stays."""
    return re.sub(_SPEECH, _introduce, text) if "，“" in text or "，「" in text else text


def _touches_chinese(text: str, start: int, end: int, source: str) -> bool:
    """Whether a pair of brackets without Chinese in it belongs to Chinese text."""
    left, right = before(text, start, _AROUND_BRACKETS), after(text, end + 1, _AROUND_BRACKETS)
    if not left or not (_is_anchor(left) or _is_anchor(right)) or _is_set_apart(text, start, end):
        return False
    if end - start > _CODE_LENGTH:
        return True
    call = text[start - 1 : end + 1]  # with what comes before, as in `f(x)`
    is_call = call[0].isascii() and call[0].isalnum() and (not source or call in source)
    return not is_call and _CODE.isdisjoint(call)


def _is_set_apart(text: str, start: int, end: int) -> bool:
    """Whether spaces stand around a pair of brackets, the style of ` (WHO) ` that many publishers have."""
    neighbour = before(text, start, " ")
    return text[start - 1] == " " and (neighbour.isalnum() or neighbour == "%") and not is_han(text[end + 1 : end + 2])


def _nest(quotation: re.Match[str]) -> str:
    """Straight quotes within curly ones become inner quotes."""
    parts = quotation[0].split('"')
    if len(parts) % 2 == 0:
        return quotation[0]
    return "".join(part + "‘’"[index % 2] for index, part in enumerate(parts[:-1])) + parts[-1]


def _pair(text: str) -> str:
    """Straight quotes become curly: by turns, and at the two ends of the text also alone."""
    characters = list(text)
    opening: int | None = None
    for match in _QUOTE.finditer(text):
        index = match.start()
        if match[0] == '"' and opening is not None:
            if text[opening] == "“":
                characters[index] = "”"
            elif _is_chinese_quotation(text, opening, index):
                characters[opening], characters[index] = "“", "”"
            opening = None
        else:
            if opening is not None and text[opening] == '"':
                characters[opening] = _lone(text, opening)
            is_inch = match[0] == '"' and text[index - 1 : index].isdigit()
            opening = None if match[0] == "”" or is_inch else index
    if opening is not None and text[opening] == '"':
        characters[opening] = _lone(text, opening)
    return "".join(characters)


def _is_chinese_quotation(text: str, start: int, end: int) -> bool:
    left, right = before(text, start, _AROUND_QUOTES), after(text, end + 1, _AROUND_QUOTES)
    return has_han(text[start:end]) or _is_anchor(left) or _is_anchor(right)


def _is_anchor(character: str) -> bool:
    """Whether it is Chinese whatever other rules have done."""
    return is_han(character) or character in TITLES


def _lone(text: str, index: int) -> str:
    """What a straight quote without a partner is: opening at the beginning of the text, closing at its end."""
    if not before(text, index, _AROUND_QUOTES):
        return "“"
    return '"' if after(text, index + 1, _AROUND_QUOTES) else "”"


def _pair_single(text: str) -> str:
    """Straight single quotes around Chinese become curly: inner marks within a quotation, outer ones elsewhere."""
    is_inside = False

    def replacement(match: re.Match[str]) -> str:
        nonlocal is_inside
        if match[1] is None:
            is_inside = match[0] == "“"
            return match[0]
        if not has_han(match[1]):
            return match[0]
        return f"‘{match[1]}’" if is_inside else f"“{match[1]}”"

    return re.sub(_STRAIGHT_SINGLE, replacement, text)


def _introduce(match: re.Match[str]) -> str:
    said, rest = match[1], match[2]
    ends_text = match.end(2) == len(match.string) and rest[1:] in ("", "。", "？", "！")
    return "：" if ends_text or not _CLAUSE_MARKS.isdisjoint(said) else "，"
