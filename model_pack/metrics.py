"""What is measured of systems' outputs on a set of sentences, beside references and each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from model_pack.baseline import BASELINE, Run
from model_pack.dataset import Segment, base_code

_LONGEST_FRAGMENT = 12
_REPETITIONS = 5
_LONGEST_DIGIT_RUN = 12  # the zeros of a trillion


@dataclass(frozen=True)
class Metrics:
    """The figures of one system on one set; None where there is nothing to compare with.

    A refused text counts as an empty output in all figures but `empty`.

    Attributes:
        bleu: sacrebleu's corpus BLEU over the segments that have references.
        chrf: sacrebleu's corpus chrF over the same.
        identical_to_fp32: share of sentences that came out as from the FP32 pack.
        identical_to_baseline: the same, for the baseline's greedy output.
        length_ratio: characters of the outputs over those of the references, where there are any.
        length_ratio_to_baseline: characters of the outputs over those of the baseline's greedy output.
        loops: outputs that repeat themselves, as `has_loop` sees it.
        empty: outputs without a visible character for sources that have letters.
        refused: texts that the pack could not translate.
        milliseconds: of wall time a sentence. Informational: it depends on the machine and its load.
    """

    bleu: float | None
    chrf: float | None
    identical_to_fp32: float | None
    identical_to_baseline: float | None
    length_ratio: float | None
    length_ratio_to_baseline: float | None
    loops: int
    empty: int
    refused: int
    milliseconds: float | None


@dataclass(frozen=True)
class Sentence:
    """A segment and what each system made of it."""

    id: str
    category: str | None
    source: str
    reference: str | None
    outputs: dict[str, str | None]


@dataclass(frozen=True)
class SetEvaluation:
    """All systems on one set."""

    name: str
    segments: int
    systems: dict[str, Metrics]
    sentences: list[Sentence]


def evaluate_set(
    name: str, segments: Sequence[Segment], runs: Mapping[str, Run], target_language: str, fp32: str | None
) -> SetEvaluation:
    """Measure what systems made of one set.

    Args:
        runs: by system; the one named BASELINE, if there is one, is what the others are compared with.
        target_language: BCP 47 code; decides how BLEU splits words.
        fp32: the system that the others' outputs are compared with; None if there is none.
    """
    baseline = runs[BASELINE].outputs if BASELINE in runs else None
    full = runs[fp32].outputs if fp32 is not None else None
    systems: dict[str, Metrics] = {}
    for system, run in runs.items():
        texts = [output or "" for output in run.outputs]
        pairs = [(text, s.reference) for text, s in zip(texts, segments, strict=True) if s.reference is not None]
        hypotheses, references = [text for text, _ in pairs], [reference for _, reference in pairs]
        systems[system] = Metrics(
            bleu=round(bleu_for(target_language).corpus_score(hypotheses, [references]).score, 2) if pairs else None,
            chrf=round(CHRF().corpus_score(hypotheses, [references]).score, 2) if pairs else None,
            identical_to_fp32=_identical(run.outputs, full) if system != fp32 else None,
            identical_to_baseline=_identical(run.outputs, baseline) if system != BASELINE else None,
            length_ratio=_length_ratio(hypotheses, references),
            length_ratio_to_baseline=_length_ratio(texts, baseline) if baseline and system != BASELINE else None,
            loops=sum(map(has_loop, texts)),
            empty=sum(
                output is not None and not output.strip() and any(map(str.isalpha, segment.source))
                for output, segment in zip(run.outputs, segments, strict=True)
            ),
            refused=sum(output is None for output in run.outputs),
            milliseconds=None if run.milliseconds is None else round(run.milliseconds, 2),
        )
    sentences = [
        Sentence(s.id, s.category, s.source, s.reference, {system: run.outputs[index] for system, run in runs.items()})
        for index, s in enumerate(segments)
    ]
    return SetEvaluation(name, len(segments), systems, sentences)


def has_loop(text: str) -> bool:
    """Whether a fragment of 1 to 12 characters stands at least five times in a row.

    Fragments without a letter or a digit are no loops: "......" and "——————" are punctuation. Nor is one digit
    up to twelve times: "100000" is a number.
    """
    for size in range(1, _LONGEST_FRAGMENT + 1):
        equal = 0  # characters up to here that are the one `size` before them
        for index in range(size, len(text)):
            equal = equal + 1 if text[index] == text[index - size] else 0
            if equal < (_REPETITIONS - 1) * size:
                continue
            fragment = text[index - size + 1 : index + 1]
            is_number = fragment.isdecimal() and len(set(fragment)) == 1 and equal + size <= _LONGEST_DIGIT_RUN
            if any(map(str.isalnum, fragment)) and not is_number:
                return True
    return False


def bleu_for(target_language: str) -> BLEU:
    # Chinese has no spaces between words: BLEU is counted in characters there.
    return BLEU(tokenize="zh" if base_code(target_language) == "zh" else "13a")


def _identical(outputs: Sequence[str | None], others: Sequence[str | None] | None) -> float | None:
    if not others:
        return None
    return sum(output == other for output, other in zip(outputs, others, strict=True)) / len(others)


def _length_ratio(outputs: Sequence[str | None], others: Sequence[str | None]) -> float | None:
    characters = sum(len(other or "") for other in others)
    return sum(len(output or "") for output in outputs) / characters if characters else None
