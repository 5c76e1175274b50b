"""What must come through translation unchanged: addresses, code, placeholders, paths, emoji, digits.

Measured with the starter model: left as they are, 0 to 20% of such spans survive (numbers: in half the sentences). A
well-known word in their place (`mask`) survives in 31 of 32 sentences that were written around a span, and in half of
those that a span was pushed into. Translating what stands between them (`cut`) keeps all, but where the span is part
of the grammar it costs 10 to 16 points of chrF. Hence the ladder, each step taken only when `lost` names something
after the one before:

1. as it is, if `spans` holds nothing but numbers;
2. `mask` and `unmask`: what is no number, and the numbers that were lost;
3. `cut` and `paste` at all spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from function.text.numerals import missing_numbers
from function.text.pieces import FINAL_STOPS, FULL_WIDTH, Piece, is_wide, join
from function.text.spans import EMOJI, HASHTAG, MARKUP, NUMBER, Span

# Latin words that Chinese text keeps and that the starter model copied best.
MASKS = ("DOM", "Linux", "API", "SDK", "CD", "LED", "USB", "JSON")
_MOST_MASKS = 4  # one mask survives in 90% of sentences, two in 75%: with more, cutting is the likelier way


@dataclass(frozen=True)
class Mask:
    """A word of the masked text and what it stands for."""

    word: str
    value: str
    glued_left: bool  # no space before the span in the source, so none in the translation
    glued_right: bool


@dataclass(frozen=True)
class Masked:
    """A sentence with words in the place of its spans.

    Spans on its outer edges that no grammar depends on, such as emoji, are kept apart in `before` and `after`.
    """

    text: str
    masks: tuple[Mask, ...]
    before: str = ""
    after: str = ""


def lost(source: str, spans: Sequence[Span], target: str) -> list[Span]:
    """The spans that a translation lacks or has more often than its source.

    Numbers are compared by value, in any form that Chinese has for them, and may be more in the translation, where an
    English word has become a digit. All else must be there to the character.

    Args:
        source: one sentence.
        spans: from `find_spans(source)`.
        target: its translation.
    """
    numbers = [span for span in spans if span.kind == NUMBER]
    missing = missing_numbers(source, [(span.start, span.end) for span in numbers], target) if numbers else []
    values = [(span, source[span.start : span.end]) for span in spans if span.kind != NUMBER]
    altered = [span for span, value in values if target.count(value) != source.count(value)]
    return sorted([*(numbers[index] for index in missing), *altered])


def mask(text: str, spans: Sequence[Span]) -> Masked | None:
    """Put a word that models copy in the place of each span.

    Args:
        text: one sentence.
        spans: from `find_spans(text)`, any of them.

    Returns:
        None where there are more spans than a model can be expected to keep, or the text holds the words itself.
    """
    start, end, inner = _without_edges(text, spans)
    lowered = text.lower()
    words = [word for word in MASKS if word.lower() not in lowered]
    if len(inner) > min(_MOST_MASKS, len(words)):
        return None
    masks: list[Mask] = []
    masked = ""
    position = start
    for span, word in zip(inner, words, strict=False):
        masked += text[position : span.start]
        before, after = text[start : span.start][-1:], text[span.end : end][:1]
        masks.append(Mask(word, text[span.start : span.end], _is_glue(before), _is_glue(after)))
        # A word that touches letters, or the next word, would be read as part of another.
        masked += " " * masked[-1:].isalnum() + word + " " * after.isalnum()
        position = span.end
    return Masked(masked + text[position:end], tuple(masks), text[:start], text[end:])


def unmask(translation: str, masked: Masked) -> str | None:
    """Put the spans back.

    Returns:
        None where a word is not there exactly once. The order is the translation's: Chinese often needs another.
    """
    lowered = translation.lower()
    places: list[tuple[int, int, str]] = []
    for item in masked.masks:
        start = translation.find(item.word)
        end = start + len(item.word)
        if start < 0 or lowered.count(item.word.lower()) != 1 or touches_latin(translation, start, end):
            return None
        while item.glued_left and start and translation[start - 1] == " ":
            start -= 1
        while item.glued_right and translation[end : end + 1] == " ":
            end += 1
        places.append((start, end, item.value))
    output: list[str] = []
    position = 0
    for start, end, value in sorted(places):
        output += [translation[position:start], value]
        position = max(position, end)
    return masked.before + "".join(output) + translation[position:] + masked.after


def cut(text: str, spans: Sequence[Span]) -> list[Piece]:
    """Cut a sentence around spans; what stands between them is translated on its own.

    Returns:
        Pieces for `paste`. Joined, they are the text.
    """
    pieces: list[Piece] = []
    position = 0
    for start, end in [*((span.start, span.end) for span in spans), (len(text), len(text))]:
        between = text[position:start]
        core = between.strip()
        if any(map(str.isalpha, core)):
            lead = between[: between.index(core)]
            pieces += [Piece(lead, False), Piece(core, True), Piece(between[len(lead) + len(core) :], False)]
        else:
            pieces.append(Piece(between, False))
        pieces.append(Piece(text[start:end], False))
        position = end
    return [piece for piece in pieces if piece.text]


def paste(pieces: Sequence[Piece], translations: Sequence[str]) -> str:
    """Join what `cut` gave with the translations of its translatable pieces.

    A full stop that the model added to a part goes, and a stop that stood alone becomes a Chinese one.

    Raises:
        ValueError: there are more or fewer translations than translatable pieces.
    """
    parts = [piece for piece in pieces if piece.translatable]
    is_chinese = any(is_wide(character) for translation in translations for character in translation)
    if not is_chinese or list(translations) == [part.text for part in parts] or len(translations) != len(parts):
        return join(pieces, translations)  # it refuses a wrong number
    outputs = [
        translation if part is pieces[-1] or part.text[-1] in ".!?…" else translation.rstrip(FINAL_STOPS)
        for part, translation in zip(parts, translations, strict=True)
    ]
    adjusted = [*pieces[:1]]
    for before, piece in pairwise(pieces):
        stop = FULL_WIDTH.get(piece.text.strip())
        adjusted.append(Piece(stop, False) if stop and not before.text[-1].isspace() else piece)
    return join(adjusted, outputs)


def _without_edges(text: str, spans: Sequence[Span]) -> tuple[int, int, list[Span]]:
    """Where the sentence proper starts and ends, and the spans inside it."""
    inner = sorted(spans)
    start, end = 0, len(text)
    while inner and inner[0].kind in (EMOJI, MARKUP) and not text[start : inner[0].start].strip():
        start = inner.pop(0).end
    while inner and inner[-1].kind in (EMOJI, MARKUP, HASHTAG) and not text[inner[-1].end : end].strip():
        end = inner.pop().start
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end, inner


def _is_glue(neighbour: str) -> bool:
    """Whether the character beside a span belongs to it, as brackets do and the stops of a sentence do not."""
    return neighbour not in " .,;:!?…"


def touches_latin(text: str, start: int, end: int) -> bool:
    """Whether a letter or digit of ASCII stands right before or after a part of a text."""
    neighbours = text[max(0, start - 1) : start] + text[end : end + 1]
    return any(character.isascii() and character.isalnum() for character in neighbours)
