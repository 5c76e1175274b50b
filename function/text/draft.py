"""A translation on its way through the stages that follow decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Self

from function.text.guard import Problem
from function.text.halves import join

Step = tuple[str, str]  # the name of a stage, and what it made of the text


@dataclass(frozen=True)
class Draft:
    """What a text has become so far.

    Attributes:
        log_probability: sum of the natural-log probabilities of the target tokens.
        has_ended: whether the model itself ended it, and not the limit of its length.
        problem: what is wrong with it, as far as the guard can tell.
        is_recovered: whether a problem was found and a retry was without it.
        is_finished: False where time was up before it was decoded.
        steps: the stages that it went through.
    """

    text: str
    log_probability: float = 0.0
    source_tokens: int = 0
    target_tokens: int = 0
    has_ended: bool = True
    problem: Problem | None = None
    is_recovered: bool = False
    is_finished: bool = True
    steps: tuple[Step, ...] = ()

    def after(self, stage: str, text: str) -> Self:
        """The draft after a stage that made its text into another."""
        return self if text == self.text else replace(self, text=text, steps=(*self.steps, (stage, text)))


def combined(stage: str, text: str, drafts: Sequence[Draft]) -> Draft:
    """One draft of the drafts of a text's parts; the first part with a problem lends its own."""
    return Draft(
        text=text,
        log_probability=sum(draft.log_probability for draft in drafts),
        source_tokens=sum(draft.source_tokens for draft in drafts),
        target_tokens=sum(draft.target_tokens for draft in drafts),
        has_ended=all(draft.has_ended for draft in drafts),
        problem=next((draft.problem for draft in drafts if draft.problem), None),
        is_recovered=any(draft.is_recovered for draft in drafts),
        is_finished=all(draft.is_finished for draft in drafts),
        steps=(*(step for draft in drafts for step in draft.steps), (stage, text)),
    )


def joined(stage: str, drafts: Sequence[Draft]) -> Draft:
    """One draft of those of a sentence's neighbouring parts."""
    if len(drafts) == 1:
        return drafts[0]
    return combined(stage, reduce(join, (draft.text for draft in drafts)), drafts)
