"""Translating sentences so that what must not change comes through: the least intrusive way first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from function.text.caps import normalize_apostrophes, normalize_case
from function.text.draft import Draft, Step, combined
from function.text.protection import Masked, cut, lost, mask, paste, unmask
from function.text.spans import NUMBER, Span, find_spans

_MASKINGS = 2  # of all but numbers, then of the numbers that were lost, too


@dataclass
class _Work:
    """A sentence on its way."""

    sentence: str
    spans: list[Span]
    readable: str  # the sentence with the capitals that a model should read; spans are the same
    hidden: list[Span]  # the spans that have a mask
    masked: Masked | None
    steps: list[Step]
    result: Draft | None = None


def translate_protected(sentences: Sequence[str], translate: Callable[[list[str]], list[Draft]]) -> list[Draft]:
    """Translate sentences with their addresses, code, placeholders, numbers and emoji unchanged.

    Args:
        sentences: each a line of its own.
        translate: makes drafts of plain texts, one each; called three times at most, for all sentences at once.

    Returns:
        The drafts. Numbers are the same by value, the rest to the character.
    """
    works = [_begin(sentence) for sentence in sentences]
    for _ in range(_MASKINGS):
        pending = [(work, work.masked) for work in works if work.result is None and work.masked is not None]
        drafts = translate([masked.text for _, masked in pending]) if pending else []
        for (work, masked), draft in zip(pending, drafts, strict=True):
            if masked.text != work.readable:
                work.steps.append(("mask", masked.text))
            work.steps += draft.steps
            _advance(work, masked, draft)

    uncut = [(work, cut(work.readable, work.spans)) for work in works if work.result is None]
    texts = [piece.text for _, pieces in uncut for piece in pieces if piece.translatable]
    waiting = iter(translate(texts) if texts else [])
    for work, pieces in uncut:
        parts = [next(waiting) for piece in pieces if piece.translatable]
        work.result = combined("cut", paste(pieces, [part.text for part in parts]), parts)
        work.steps += work.result.steps
    return [replace(work.result, steps=tuple(work.steps)) for work in works if work.result]


def _begin(sentence: str) -> _Work:
    spans = find_spans(sentence)
    hidden = [span for span in spans if span.kind != NUMBER]
    readable = normalize_apostrophes(normalize_case(sentence, spans))
    steps = [] if readable == sentence else [("case", readable)]
    return _Work(sentence, spans, readable, hidden, mask(readable, hidden), steps)


def _advance(work: _Work, masked: Masked, draft: Draft) -> None:
    """Take the draft if it has kept everything; otherwise choose what to try next."""
    result = unmask(draft.text, masked)
    missing = [] if result is None else lost(work.sentence, work.spans, result)
    if not draft.is_finished or (result is not None and not missing):
        work.result = draft
        if result is not None and result != draft.text:
            work.steps.append(("unmask", result))
            work.result = replace(draft, text=result)
    elif missing and not set(missing) & set(work.hidden):
        work.hidden = sorted([*work.hidden, *missing])
        work.masked = mask(work.readable, work.hidden)
    else:
        work.masked = None
