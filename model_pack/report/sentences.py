"""The tables of sentences, and what they can be filtered by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from model_pack.report import wording
from model_pack.report.comparison import DIFFERS, LONGER, WORSE, Contest, Judgement, marked
from model_pack.report.inputs import Evaluation, Sentence, SentenceSet


@dataclass(frozen=True)
class Choice:
    """A button that filters."""

    value: str
    label: str
    count: int
    explanation: str = ""


@dataclass(frozen=True)
class Cell:
    """What one system made of a sentence."""

    system: str
    content: Markup | None  # None: nothing
    same: bool  # as the text that differences are marked against


@dataclass(frozen=True)
class Row:
    sentence: Sentence
    cells: Sequence[Cell]
    flags: Sequence[str]
    tags: Sequence[str]
    loss: str


@dataclass(frozen=True)
class Section:
    """The table of one set's sentences."""

    name: str
    note: str
    rows: Sequence[Row]
    references: bool


def flag_choices(contest: Contest, judgements: Sequence[Sequence[Judgement]]) -> list[Choice]:
    """Only filters that the evaluation can answer."""
    if not contest.rivals:
        return []
    every = [judgement for found in judgements for judgement in found]
    subject, rival = wording.system_name(contest.subject), wording.system_name(contest.rivals[0])
    counts = Counter(flag for judgement in every for flag in judgement.flags)
    any_of = ", or not as ".join(map(wording.system_name, contest.rivals))
    choices = [Choice(DIFFERS, "differs", counts[DIFFERS], f"{subject} is not the same as {any_of}.")]
    if any(judgement.loss is not None for judgement in every):
        target = "the reference"
        if len(contest.rivals) > 1:
            target += ", or against the baseline where there is none,"
        choices.append(
            Choice(WORSE, "worse", counts[WORSE], f"The chrF of {subject} against {target} is below that of {rival}.")
        )
    explanation = f"{subject} is longer than {rival} by more than a fifth and at least three characters."
    return [*choices, Choice(LONGER, "longer", counts[LONGER], explanation)]


def category_choices(evaluation: Evaluation) -> list[Choice]:
    counts = Counter(sentence.category or "" for sentence in evaluation.sentences)
    if not any(counts):
        return []
    return [Choice(category, category or "no category", number) for category, number in counts.items()]


def set_choices(evaluation: Evaluation) -> list[Choice]:
    if len(evaluation.sets) == 1:
        return []
    return [Choice(one.name, one.name, len(one.sentences)) for one in evaluation.sets]


def section(one: SentenceSet, systems: Sequence[str], contest: Contest, judgements: Sequence[Judgement]) -> Section:
    rows = [
        Row(
            sentence,
            _cells(sentence, systems, bases(contest)),
            [flag for flag in (DIFFERS, WORSE, LONGER) if flag in judgement.flags],
            _tags(judgement, contest),
            "" if judgement.loss is None else f"{judgement.loss:.4f}",
        )
        for sentence, judgement in zip(one.sentences, judgements, strict=True)
    ]
    note = f"{wording.count(len(rows))} {wording.plural('sentence', len(rows))}"
    if one.segments != len(rows):
        note += f", of {wording.count(one.segments)} segments in the set"
    return Section(one.name, note, rows, any(sentence.reference for sentence in one.sentences))


def bases(contest: Contest) -> list[str]:
    """The systems that the others' outputs may be marked against, the first that a sentence has."""
    return list(reversed(contest.rivals))


def _cells(sentence: Sentence, systems: Sequence[str], bases: Sequence[str]) -> list[Cell]:
    base = next((system for system in bases if system in sentence.outputs), None)
    cells = []
    for system in systems:
        text = sentence.outputs.get(system)
        if text is None:
            cells.append(Cell(system, None, False))
        elif base is None or system == base:
            cells.append(Cell(system, Markup.escape(text), False))
        else:
            cells.append(Cell(system, marked(text, sentence.outputs[base]), text == sentence.outputs[base]))
    return cells


def _tags(judgement: Judgement, contest: Contest) -> list[str]:
    tags = []
    if WORSE in judgement.flags and judgement.loss is not None:
        tags.append(f"worse by {judgement.loss:.1f} chrF" if judgement.loss >= 0.05 else "worse by less than 0.1 chrF")
    if LONGER in judgement.flags:
        rival = wording.system_name(contest.rivals[0])
        tags.append(
            f"longer by {judgement.growth:.0%}" if judgement.growth is not None else f"longer, {rival} is empty"
        )
    if DIFFERS in judgement.flags and not tags:
        tags.append("differs")
    return tags
