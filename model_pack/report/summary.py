"""The cards: what to see first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model_pack.report import wording
from model_pack.report.comparison import WORSE, Contest, Judgement, identical
from model_pack.report.inputs import Evaluation, Pack, SentenceSet
from model_pack.report.tables import Table

_QUALITY = ("chrf", "bleu")
_BROKEN = ("loops", "empty", "refused")


@dataclass(frozen=True)
class Card:
    """One of the things to see first."""

    title: str
    value: str = ""
    note: str = ""
    flag: str = ""  # a filter that shows the sentences in question
    table: Table | None = None


def cards(
    evaluation: Evaluation,
    packs: Sequence[Pack],
    contest: Contest,
    judged: Pack | None,
    judgements: Sequence[Sequence[Judgement]],
) -> list[Card]:
    return [
        *_size_cards(packs, judged),
        *_identity_cards(evaluation, contest),
        *_flag_cards(contest, judgements),
        *(_quality_card(one, evaluation.systems, contest) for one in evaluation.sets),
        *_broken_cards(evaluation),
    ]


def _size_cards(packs: Sequence[Pack], judged: Pack | None) -> list[Card]:
    if judged is None:
        return []
    others = [
        f"{judged.size / pack.size:.0%} of {pack.name} ({wording.size(pack.size)})"
        for pack in packs
        if pack is not judged and pack.size
    ]
    return [Card(f"Size of {judged.name}", wording.size(judged.size), ", ".join(others))]


def _identity_cards(evaluation: Evaluation, contest: Contest) -> list[Card]:
    found = []
    for rival in contest.rivals:
        same, all_ = identical(evaluation.sentences, contest.subject, rival)
        if all_:
            title = f"{wording.system_name(contest.subject)} same as {wording.system_name(rival)}"
            found.append(
                Card(title, wording.share(same / all_), f"{wording.of(same, all_)} {wording.plural('sentence', all_)}")
            )
    return found


def _flag_cards(contest: Contest, judgements: Sequence[Sequence[Judgement]]) -> list[Card]:
    every = [judgement for found in judgements for judgement in found]
    if not contest.rivals or all(judgement.loss is None for judgement in every):
        return []
    worse = sum(WORSE in judgement.flags for judgement in every)
    better = sum(judgement.loss is not None and judgement.loss < 0 for judgement in every)
    title = f"Worse than {wording.system_name(contest.rivals[0])}"
    note = f"of {wording.count(len(every))} {wording.plural('sentence', len(every))}; better: {wording.count(better)}"
    return [Card(title, wording.count(worse), note, WORSE if worse else "")]


def _broken_cards(evaluation: Evaluation) -> list[Card]:
    names = [name for name in _BROKEN if any(name in f for one in evaluation.sets for f in one.figures.values())]
    rows = [
        [wording.system_name(system), *(_total(evaluation, system, name) for name in names)]
        for system in evaluation.systems
        if any(name in one.figures.get(system, {}) for one in evaluation.sets for name in names)
    ]
    if not rows:
        return []
    header = ["", *(wording.FIGURES[name].label for name in names)]
    return [Card("Broken outputs", table=Table("Broken outputs over all sets", header, rows))]


def _total(evaluation: Evaluation, system: str, name: str) -> str:
    values = [one.figures[system][name] for one in evaluation.sets if name in one.figures.get(system, {})]
    return wording.count(sum(values)) if values else "–"


def _quality_card(one: SentenceSet, systems: Sequence[str], contest: Contest) -> Card:
    title = f"Quality on {one.name}"
    note = f"{wording.count(one.segments)} {wording.plural('segment', one.segments)}"
    names = [name for name in _QUALITY if any(name in figures for figures in one.figures.values())]
    if not names:
        return Card(title, note=f"{note} without chrF and BLEU: no references, or none measured.")
    rows = [
        [wording.system_name(system), *(wording.figure(one.figures[system], name) for name in names)]
        for system in systems
        if any(name in one.figures.get(system, {}) for name in names)
    ]
    ours = one.figures.get(contest.subject, {})
    for rival in contest.rivals[:1]:
        theirs = one.figures.get(rival, {})
        changes = [wording.signed(ours[n] - theirs[n]) if n in ours and n in theirs else "–" for n in names]
        rows.append([f"{wording.system_name(contest.subject)} − {wording.system_name(rival)}", *changes])
    header = ["", *(wording.FIGURES[name].label for name in names)]
    table = Table(f"{title}, higher is better", header, rows, total=bool(contest.rivals))
    return Card(title, note=note + "; higher is better", table=table)
