"""A text of any format as the segments that are translated and the rest that stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from function.text.pieces import Piece, join
from function.text.segmentation import has_nothing_to_translate, split


class Document(Protocol):
    """What a text is between its coming in and its going out.

    `segments` are plain texts to translate. `join` puts their translations in their places.
    """

    segments: list[str]

    def join(self, translations: Sequence[str]) -> str: ...


class PlainText:
    """A text of lines and sentences.

    Args:
        unwrap: whether lines that were broken at a margin are one paragraph.
    """

    def __init__(self, text: str, *, unwrap: bool) -> None:
        self._pieces = split(text, unwrap=unwrap)
        self.segments = [piece.sentence for piece in self._pieces if piece.translatable]

    def join(self, translations: Sequence[str]) -> str:
        return join(self._pieces, translations)


class WholeText:
    """A text that is one segment, but for the white space around it."""

    def __init__(self, text: str) -> None:
        core = text.strip()
        start = text.find(core)
        is_translatable = not has_nothing_to_translate(text)
        pieces = Piece(text[:start], False), Piece(core, is_translatable), Piece(text[start + len(core) :], False)
        self._pieces = [piece for piece in pieces if piece.text]
        self.segments = [core] if is_translatable else []

    def join(self, translations: Sequence[str]) -> str:
        return join(self._pieces, translations)


def open_document(
    text: str, format_: Literal["text", "html"], segmentation: Literal["sentences", "unwrap", "none"]
) -> Document:
    """The document of a text; HTML is cut at its blocks and sentences, whatever the segmentation."""
    if format_ == "html":
        from function.text.markup import HtmlDocument  # noqa: PLC0415 - most requests are plain text

        return HtmlDocument(text)
    return WholeText(text) if segmentation == "none" else PlainText(text, unwrap=segmentation == "unwrap")
