"""Holds the outputs of the systems against each other, sentence by sentence and character by character."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import sacrebleu
from markupsafe import Markup, escape

from model_pack.report.inputs import BASELINE, Sentence

DIFFERS, WORSE, LONGER = "differs", "worse", "longer"

_LONGER_RATIO = 1.2
_LONGER_CHARACTERS = 3

# Beyond this many pairs of characters, finding what two texts share takes seconds: the middle counts as changed.
_DIFF_LIMIT = 1_000_000
_TITLE_LIMIT = 200

_ROUNDING = 1e-9  # of chrF, between texts that share the same n-grams


@dataclass(frozen=True)
class Contest:
    """Which system is judged, and which it is held against.

    A system plays a part by its name or, where packs have names of their own, by its precision.
    """

    subject: str  # INT8; without one, the last pack
    full: str | None  # FP32
    baseline: str | None

    @classmethod
    def of(cls, systems: Sequence[str], precisions: Mapping[str, str]) -> Contest:
        """
        Args:
            systems: at least one.
            precisions: of the systems that are packs, as far as known.
        """

        def with_precision(precision: str) -> str | None:
            if precision in systems:
                return precision
            return next((system for system in systems if precisions.get(system) == precision), None)

        baseline = BASELINE if BASELINE in systems else None
        packs = [system for system in systems if not system.startswith(BASELINE)]
        subject = with_precision("int8") or (packs or systems)[-1]
        full = with_precision("fp32")
        return cls(subject, None if full == subject else full, None if baseline == subject else baseline)

    @property
    def rivals(self) -> tuple[str, ...]:
        """What the subject is held against, the closest first."""
        return tuple(rival for rival in (self.full, self.baseline) if rival)

    def ordered(self, systems: Sequence[str]) -> list[str]:
        """From the origin to what was made of it, then the others."""
        players = [player for player in (self.baseline, self.full, self.subject) if player]
        return [*players, *(system for system in systems if system not in players)]


@dataclass(frozen=True)
class Judgement:
    """What stands out in one sentence."""

    flags: frozenset[str]
    loss: float | None  # chrF points that the subject is below its rival; None where nothing can tell
    growth: float | None  # length of the subject's output / its rival's - 1


def judge(sentence: Sentence, contest: Contest) -> Judgement:
    """Compare the subject's output with those of its rivals. An output that is missing counts as an empty one."""
    outputs = sentence.outputs
    rivals = [rival for rival in contest.rivals if rival in outputs]
    if not rivals:
        return Judgement(frozenset(), None, None)
    ours, theirs = outputs.get(contest.subject, ""), outputs[rivals[0]]
    flags = set()
    if any(outputs.get(contest.subject) != outputs[rival] for rival in rivals):
        flags.add(DIFFERS)
    target = sentence.reference or (outputs[rivals[1]] if len(rivals) > 1 else None)
    loss = None
    if target is not None:
        loss = 0.0 if ours == theirs else _chrf(theirs, target) - _chrf(ours, target)
        if abs(loss) < _ROUNDING:
            loss = 0.0
        if loss > 0:
            flags.add(WORSE)
    growth = len(ours) / len(theirs) - 1 if theirs else None
    if len(ours) > _LONGER_RATIO * len(theirs) and len(ours) - len(theirs) >= _LONGER_CHARACTERS:
        flags.add(LONGER)
    return Judgement(frozenset(flags), loss, growth)


def identical(sentences: Iterable[Sentence], subject: str, rival: str) -> tuple[int, int]:
    """How many sentences came out the same, and of how many: a rival's output without the subject's counts."""
    pairs = [
        (sentence.outputs.get(subject), sentence.outputs[rival]) for sentence in sentences if rival in sentence.outputs
    ]
    return sum(ours == theirs for ours, theirs in pairs), len(pairs)


def marked(text: str, base: str) -> Markup:
    """`text` as HTML, what is not in `base` marked with <ins> and the places where `base` has more with <del>."""
    if text == base:
        return escape(text)
    start = next((i for i, (a, b) in enumerate(zip(text, base, strict=False)) if a != b), min(len(text), len(base)))
    rest = min(len(text), len(base)) - start
    end = next((i for i in range(rest) if text[-1 - i] != base[-1 - i]), rest)
    new, old = text[start : len(text) - end], base[start : len(base) - end]
    parts = [escape(text[:start])]
    for tag, old_from, old_to, new_from, new_to in _changes(old, new):
        if tag == "equal":
            parts.append(escape(new[new_from:new_to]))
        elif tag == "delete":
            parts.append(_deletion(old[old_from:old_to]))
        else:
            parts.append(_insertion(new[new_from:new_to], old[old_from:old_to]))
    parts.append(escape(text[len(text) - end :]))
    return Markup("").join(parts)


def _changes(old: str, new: str) -> Sequence[tuple[str, int, int, int, int]]:
    if len(old) * len(new) <= _DIFF_LIMIT:
        return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [("replace", 0, len(old), 0, len(new))]


def _insertion(new: str, old: str) -> Markup:
    title = Markup(' title="instead of: {}"').format(_shortened(old)) if old else ""
    # White space and characters without a shape need help to be seen.
    blank = Markup(' class="blank"') if all(char.isspace() or not char.isprintable() for char in new) else ""
    return Markup("<ins{}{}>{}</ins>").format(blank, title, new)


def _deletion(old: str) -> Markup:
    title = f"missing here: {_shortened(old)}"
    return Markup('<del role="img" aria-label="{}" title="{}"></del>').format(title, title)


def _shortened(text: str) -> str:
    return text if len(text) <= _TITLE_LIMIT else text[: _TITLE_LIMIT - 1] + "…"


def _chrf(output: str, target: str) -> float:
    return float(sacrebleu.sentence_chrf(output, [target]).score)
