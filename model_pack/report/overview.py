"""Which charts there are, and of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from model_pack.report import wording
from model_pack.report.charts import Bar, Chart, Group, Stack, Steps, grouped_bars, histogram, stacked_bars
from model_pack.report.comparison import Contest, identical
from model_pack.report.inputs import Evaluation, Pack, Sentence

_BINS = 21  # of the histogram: a tenth each, the last one for twice the length and more
_COLOURS = 8  # c0 to c7 of style.css


def charts(evaluation: Evaluation, packs: Sequence[Pack], contest: Contest) -> list[Chart]:
    others = [
        _system_chart(
            evaluation, contest, "chrf", "Quality: chrF", "Of 100, against the references; higher is better."
        ),
        _system_chart(
            evaluation, contest, "bleu", "Quality: BLEU", "Of 100, against the references; higher is better."
        ),
        _system_chart(evaluation, contest, "milliseconds", "Time", "Milliseconds a sentence; lower is better."),
        *(_identity_chart(evaluation, contest.subject, rival) for rival in contest.rivals),
        _length_chart(evaluation, contest),
    ]
    sizes = [_size_chart(packs)] if any(pack.size for pack in packs) else []
    return [*sizes, *(chart for chart in others if chart)]


def _size_chart(packs: Sequence[Pack]) -> Chart:
    colours = _file_colours(packs)
    stacks = [
        Stack(
            f"{pack.name} ({wording.system_name(pack.precision)})",
            wording.size(pack.size),
            [(size, colours[name], f"{name}, {wording.size(size)}") for name, size in pack.files.items()],
        )
        for pack in packs
    ]
    return Chart("Size of the packs", "By file; the sizes are in the table below.", stacked_bars(stacks))


def _file_colours(packs: Sequence[Pack]) -> dict[str, str]:
    """The largest files of all packs have colours of their own, the others share the last."""
    largest: dict[str, int] = {}
    for pack in packs:
        for name, size in pack.files.items():
            largest[name] = max(size, largest.get(name, 0))
    names = sorted(largest, key=lambda name: -largest[name])
    return {name: f"c{min(index, _COLOURS - 1)}" for index, name in enumerate(names)}


def file_sizes(packs: Sequence[Pack]) -> list[tuple[str, str, list[str]]]:
    """Colour, name and sizes of every file."""
    return [
        (colour, name, [wording.size(pack.files[name]) if name in pack.files else "–" for pack in packs])
        for name, colour in _file_colours(packs).items()
    ]


def _system_chart(evaluation: Evaluation, contest: Contest, name: str, title: str, note: str) -> Chart | None:
    groups = [
        Group(
            one.name,
            [
                Bar(
                    wording.system_name(s),
                    one.figures[s][name],
                    wording.FIGURES[name].write(one.figures[s][name]),
                    _colour(s, contest),
                )
                for s in evaluation.systems
                if name in one.figures.get(s, {})
            ],
        )
        for one in evaluation.sets
    ]
    groups = [group for group in groups if group.bars]
    return Chart(title, note, grouped_bars(groups)) if groups else None


def _colour(system: str, contest: Contest) -> str:
    parts = {contest.baseline: "s-baseline", contest.full: "s-full", contest.subject: "s-subject"}
    return parts.get(system, "s-other")


def _identity_chart(evaluation: Evaluation, subject: str, rival: str) -> Chart | None:
    """By category; by set where the sentences have none."""
    groups: dict[str, list[Sentence]] = {}
    categories = any(sentence.category for sentence in evaluation.sentences)
    for one in evaluation.sets:
        for sentence in one.sentences:
            groups.setdefault((sentence.category or "no category") if categories else one.name, []).append(sentence)
    stacks = []
    for label, sentences in groups.items():
        same, all_ = identical(sentences, subject, rival)
        if all_:
            parts = [
                (same, "same", f"{wording.count(same)} the same"),
                (all_ - same, "different", f"{wording.count(all_ - same)} different"),
            ]
            stacks.append(Stack(label, f"{wording.of(same, all_)}, {wording.share(same / all_)}", parts))
    if not stacks:
        return None
    return Chart(
        f"{wording.system_name(subject)} same as {wording.system_name(rival)}",
        f"Sentences with the very same characters, by {'category' if categories else 'set'}.",
        stacked_bars(stacks, whole=0),
        (("same", "the same"), ("different", "different")),
    )


def _length_chart(evaluation: Evaluation, contest: Contest) -> Chart | None:
    sentences = list(evaluation.sentences)
    closer: Sequence[str] = contest.rivals[:1]
    if any(sentence.reference for sentence in sentences):
        measure, targets = "reference", [sentence.reference for sentence in sentences]
    elif contest.rivals:
        *closer, rival = contest.rivals
        measure, targets = wording.system_name(rival), [sentence.outputs.get(rival) for sentence in sentences]
    else:
        return None
    series = []
    for system in (contest.subject, *closer[:1]):
        counts = Counter(
            min(int(len(sentence.outputs[system]) / len(target) * 10 + 1e-9), _BINS - 1)
            for sentence, target in zip(sentences, targets, strict=True)
            if target and system in sentence.outputs
        )
        if counts:
            series.append(
                Steps(wording.system_name(system), _colour(system, contest), [counts[i] for i in range(_BINS)])
            )
    if not series:
        return None
    return Chart(
        f"Length: output / {measure}",
        "Number of sentences by the ratio of characters, a tenth a bar. The figures are those of "
        f"{series[0].label}" + (f"; the line is {series[1].label}." if len(series) > 1 else "."),
        histogram(series, ("0", "0.5", "1", "1.5", "≥ 2")),
        tuple((one.colour, one.label) for one in series),
    )
