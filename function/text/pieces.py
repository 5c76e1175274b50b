"""A text cut into what is translated and what stays, and how it is put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Punctuation that stands alone between what is not translated, and what it is in Chinese.
FULL_WIDTH = {".": "。", "!": "！", "?": "？", ",": "，", ";": "；", ":": "："}
FINAL_STOPS = "。！？"

_WIDE_RANGES = (
    ("\u2014", "\u2026"),  # dashes, curly quotes, ellipsis: Chinese punctuation once the text is Chinese
    ("\u3000", "\u9fff"),  # CJK punctuation, kana, ideographs
    ("\uf900", "\ufaff"),
    ("\uff00", "\uffef"),  # full-width forms
    ("\U00020000", "\U0003ffff"),
)


@dataclass(frozen=True)
class Piece:
    """Part of a text; the pieces of a text, joined, are that text."""

    text: str
    translatable: bool

    @property
    def sentence(self) -> str:
        """The text on one line: only pieces of hard-wrapped paragraphs have more than one."""
        return " ".join(self.text.split()) if len(self.text.splitlines()) > 1 else self.text


def is_wide(character: str) -> bool:
    """Whether a character is a Chinese one, punctuation included, beside which no space stands. "" is none."""
    return character > "\u2013" and any(first <= character <= last for first, last in _WIDE_RANGES)


def join(pieces: Sequence[Piece], translations: Sequence[str]) -> str:
    """Put translations in the place of the translatable pieces.

    A space between two sentences that have both become Chinese goes; all else that is not translatable stays as it is.

    Args:
        pieces: of one text, in its order.
        translations: one for each translatable piece, in order; the text of the piece where it was not translated.

    Raises:
        ValueError: there are more or fewer translations than translatable pieces.
    """
    waiting = iter(translations)
    outputs = [next(waiting, None) if piece.translatable else piece.text for piece in pieces]
    if None in outputs or next(waiting, None) is not None:
        raise ValueError("there must be one translation for each translatable piece.")
    kept = [output or "" for output in outputs]
    for index in _gaps(pieces):
        before, after = kept[index - 1], kept[index + 1]
        is_chinese = before[-1:] and after[:1] and is_wide(before[-1]) and is_wide(after[0])
        if is_chinese and before != pieces[index - 1].text and after != pieces[index + 1].text:
            kept[index] = ""
    return "".join(kept)


def _gaps(pieces: Sequence[Piece]) -> Iterator[int]:
    """Indices of the spaces between two translatable pieces."""
    for index in range(1, len(pieces) - 1):
        piece = pieces[index]
        if (
            not piece.translatable
            and not piece.text.strip(" ")
            and pieces[index - 1].translatable
            and pieces[index + 1].translatable
        ):
            yield index
