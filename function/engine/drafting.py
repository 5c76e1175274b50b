"""Sentences in, drafts out: what a sentence needs to be encoded, decoded, inspected and, if need be, tried again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from function.engine.model import Model
from function.text.draft import Draft, joined
from function.text.guard import Problem, inspect
from function.text.halves import halves
from function.text.long_sentences import split_long

_WORTHLESS = (Problem.EMPTY, Problem.LOOP, Problem.MAX_LENGTH)  # any second attempt is worth more


class Drafting:
    """Makes drafts of sentences, or parts of some, in one target language.

    Args:
        language_token: the source token that asks for the language; None where none is needed.
        is_out_of_time: asked at every decoder step; when it says so, drafts are left unfinished.
    """

    def __init__(self, model: Model, language_token: str | None, is_out_of_time: Callable[[], bool]) -> None:
        self._model = model
        self._language_token = language_token
        self._is_out_of_time = is_out_of_time

    def __call__(self, texts: Sequence[str]) -> list[Draft]:
        """A draft of each text; one that is too long for the model is drafted in parts, one without a letter stays.

        Raises:
            PackError: the pack's graphs cannot be loaded.
        """
        parts = [split_long(text, self._fits) if any(map(str.isalpha, text)) else [] for text in texts]
        drafts = iter(self._attempts([part for parts_of_text in parts for part in parts_of_text]))
        return [
            joined("split", [next(drafts) for _ in parts_of_text]) if parts_of_text else Draft(text)
            for text, parts_of_text in zip(texts, parts, strict=True)
        ]

    def _fits(self, text: str) -> bool:
        return self._model.fits(text, self._language_token)

    def _attempts(self, texts: Sequence[str]) -> list[Draft]:
        """Drafts. What has a problem is tried again in halves, and a half that still has one without repetitions.

        Measured with the starter model on news and medical text, this order left the fewest problems and the best chrF.
        """
        drafts = self._decode(texts)
        failed = [index for index, draft in enumerate(drafts) if draft.problem]
        parts = {index: halves(texts[index]) or (texts[index],) for index in failed}
        halved = iter(self._decode([part for index in failed if len(parts[index]) > 1 for part in parts[index]]))
        second = {
            index: [next(halved) for _ in parts[index]] if len(parts[index]) > 1 else [drafts[index]]
            for index in failed
        }
        still = [(index, place) for index in failed for place, draft in enumerate(second[index]) if draft.problem]
        third = self._decode([parts[index][place] for index, place in still], forbids_repeats=True)
        for (index, place), draft in zip(still, third, strict=True):
            second[index][place] = draft
        for index in failed:
            drafts[index] = _better(texts[index], drafts[index], joined("retry", second[index]))
        return [_with_something(text, draft) for text, draft in zip(texts, drafts, strict=True)]

    def _decode(self, texts: Sequence[str], *, forbids_repeats: bool = False) -> list[Draft]:
        if not texts:
            return []
        drafts = self._model.decode(
            texts, self._language_token, self._is_out_of_time, gives_up_loops=True, forbids_repeats=forbids_repeats
        )
        return [_inspected(text, draft) for text, draft in zip(texts, drafts, strict=True)]


def _inspected(text: str, draft: Draft) -> Draft:
    if not draft.is_finished:
        return draft
    problem = inspect(text, draft.text, ended=draft.has_ended)
    return replace(draft, problem=problem, steps=(*draft.steps, ("guard", problem))) if problem else draft


def _with_something(text: str, draft: Draft) -> Draft:
    """Where the model has nothing to say at all, its reader is better served with the source."""
    return draft.after("keep", text) if draft.is_finished and draft.problem is Problem.EMPTY else draft


def _better(text: str, first: Draft, second: Draft) -> Draft:
    """The second attempt, if there was time for it and it is sounder than the first."""
    if not second.is_finished:
        return first
    problem = inspect(text, second.text, ended=second.has_ended)
    if problem and first.problem not in _WORTHLESS:
        return first
    return replace(second, problem=problem, is_recovered=problem is None, steps=(*first.steps, *second.steps))
