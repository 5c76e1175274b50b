"""Compares packs with each other, with references and with a baseline, on sets of sentences."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from tqdm import tqdm

import function
from function.engine.model import Model
from function.engine.pack import MANIFEST, ModelPack, PackError
from function.service.settings import vcpu_count
from model_pack.baseline import BASELINE, BASELINE_BEAM, Baseline, Run, read_baseline
from model_pack.dataset import Segment, base_code
from model_pack.errors import ModelPackError
from model_pack.files import write_atomically

_TOOLS = ("numpy", "onnxruntime", "sacrebleu")
# Enough to batch by length, few enough that the bar moves. Dynamic quantisation makes INT8 outputs depend on what
# else is in the batch, so another number here gives slightly other figures; it is in the provenance.
_SEGMENTS_PER_CALL = 256
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


@dataclass(frozen=True)
class Evaluation:
    """All systems on all sets, and what they were; `dataclasses.asdict` of it is evaluation.json."""

    provenance: dict[str, Any]
    sets: list[SetEvaluation]


def evaluate_packs(
    packs: Mapping[str, Path],
    sets: Mapping[str, Sequence[Segment]],
    baseline: Path | None,
    out: Path,
    say: Callable[[str], None],
) -> Evaluation:
    """Translate sets of sentences with packs, measure what comes out, and write it all to a JSON file.

    The file takes its name only when everything is in it, so that an interrupted or refused evaluation
    leaves `out` as it was.

    Args:
        packs: pack folders by the name that each is to have. The first of precision FP32 is what the
            others' outputs are compared with.
        sets: the sentences of each set.
        baseline: JSON lines with the outputs of another implementation, as `read_baseline` takes them.
        out: the JSON file.
        say: called with a line about each stage.

    Raises:
        ModelPackError: a folder is no pack, the packs' languages differ, the baseline does not fit the
            sets, or `out` cannot be written.
    """
    _prepare(out)
    opened = open_packs(packs)
    target = next(iter(opened.values())).targets[0].code
    fp32 = next((name for name, pack in opened.items() if pack.precision == "fp32"), None)
    read = read_baseline(baseline) if baseline else None
    runs = {name: read.runs(name, segments) if read else {} for name, segments in sets.items()}

    threads = vcpu_count()
    for system, pack in opened.items():
        say(f"Translating with {system}: {pack.path}")
        model = Model(pack, threads)
        for name, segments in sets.items():
            runs[name][system] = run_pack(model, segments, f"{system}, {name}")

    say("Measuring")
    evaluation = Evaluation(
        provenance=_provenance(opened, read, target, threads),
        sets=[evaluate_set(name, segments, runs[name], target, fp32) for name, segments in sets.items()],
    )
    write_atomically(out, json.dumps(asdict(evaluation), ensure_ascii=False, indent=2) + "\n")
    say(f"Wrote {out}")
    return evaluation


def open_packs(packs: Mapping[str, Path]) -> dict[str, ModelPack]:
    """Open packs that are to be compared.

    Raises:
        ModelPackError: there is none, a name is taken, a folder is no pack, or their languages differ.
    """
    if not packs:
        raise ModelPackError("there is no pack to evaluate; name one or more with --pack NAME=FOLDER.")
    for name in (BASELINE, BASELINE_BEAM):
        if name in packs:
            raise ModelPackError(f"a pack cannot be called {name!r}, which is what the baseline is; choose another.")
    try:
        opened = {name: ModelPack.open(path) for name, path in packs.items()}
    except PackError as error:
        raise ModelPackError(str(error)) from error
    pairs = {name: f"{pack.source.code} -> {pack.targets[0].code}" for name, pack in opened.items()}
    if len(set(pairs.values())) > 1:
        named = ", ".join(f"{name}: {pair}" for name, pair in pairs.items())
        raise ModelPackError(f"the packs translate between different languages ({named}); evaluate them apart.")
    return opened


def run_pack(model: Model, segments: Sequence[Segment], title: str) -> Run:
    """What a pack's model makes of segments, with a progress bar that bears the title; None of what is too long for it.

    Raises:
        ModelPackError: the pack's graphs cannot be loaded.
    """
    outputs: list[str | None] = []
    seconds = 0.0
    try:
        language_token = model.pack.targets[0].token
        model.decode(["a"], language_token)  # loads what is loaded once, which is not what a sentence costs
        with tqdm(total=len(segments), desc=title, unit="sentence") as bar:
            for start in range(0, len(segments), _SEGMENTS_PER_CALL):
                texts = [segment.source for segment in segments[start : start + _SEGMENTS_PER_CALL]]
                fits = [model.fits(text, language_token) for text in texts]
                started = time.perf_counter()
                drafts = iter(
                    model.decode([text for text, fit in zip(texts, fits, strict=True) if fit], language_token)
                )
                seconds += time.perf_counter() - started
                outputs += [next(drafts).text if fit else None for fit in fits]
                bar.update(len(texts))
    except PackError as error:
        raise ModelPackError(str(error)) from error
    return Run(outputs, seconds / len(segments) * 1000 if segments else None)


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
            bleu=round(_bleu(target_language).corpus_score(hypotheses, [references]).score, 2) if pairs else None,
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


# Metric -> title of its column, and format.
_COLUMNS = {
    "bleu": ("BLEU", ".2f"),
    "chrf": ("chrF", ".2f"),
    "identical_to_fp32": ("same as FP32", ".1%"),
    "identical_to_baseline": ("same as baseline", ".1%"),
    "length_ratio": ("length / reference", ".3f"),
    "length_ratio_to_baseline": ("length / baseline", ".3f"),
    "loops": ("loops", "d"),
    "empty": ("empty", "d"),
    "refused": ("refused", "d"),
    "milliseconds": ("ms a sentence", ".1f"),
}


def markdown(evaluation: Evaluation) -> str:
    """The metrics as a Markdown table: a row for each set and system, without the columns that nothing has."""
    rows = [(set_, system, metrics) for set_ in evaluation.sets for system, metrics in set_.systems.items()]
    shown = [
        metric.name
        for metric in fields(Metrics)
        if any(getattr(metrics, metric.name) is not None for _, _, metrics in rows)
    ]
    table = [["set", "sentences", "system", *(_COLUMNS[name][0] for name in shown)], ["---"] * (len(shown) + 3)]
    for set_, system, metrics in rows:
        values = ((getattr(metrics, name), _COLUMNS[name][1]) for name in shown)
        cells = ("" if value is None else format(value, form) for value, form in values)
        table.append([set_.name, str(set_.segments), system, *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in table)


def _provenance(
    packs: Mapping[str, ModelPack], baseline: Baseline | None, target_language: str, threads: int
) -> dict[str, Any]:
    return {
        "versions": {
            "marian-lambda": function.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _TOOLS},
        },
        "threads": threads,
        "segments_per_call": _SEGMENTS_PER_CALL,
        "bleu": _signature(_bleu(target_language)),
        "chrf": _signature(CHRF()),
        "packs": {
            name: {
                "model": pack.model_id,
                "precision": pack.precision,
                "manifest_sha256": hashlib.sha256((pack.path / MANIFEST).read_bytes()).hexdigest(),
            }
            for name, pack in packs.items()
        },
        "baseline": {"sha256": baseline.sha256, "provenance": baseline.provenance} if baseline else None,
    }


def _bleu(target_language: str) -> BLEU:
    # Chinese has no spaces between words: BLEU is counted in characters there.
    return BLEU(tokenize="zh" if base_code(target_language) == "zh" else "13a")


def _signature(metric: BLEU | CHRF) -> str:
    metric.corpus_score(["a"], [["a"]])  # sacrebleu signs only what has been used: the number of references is in it
    return str(metric.get_signature())


def _identical(outputs: Sequence[str | None], others: Sequence[str | None] | None) -> float | None:
    if not others:
        return None
    return sum(output == other for output, other in zip(outputs, others, strict=True)) / len(others)


def _length_ratio(outputs: Sequence[str | None], others: Sequence[str | None]) -> float | None:
    characters = sum(len(other or "") for other in others)
    return sum(len(output or "") for output in outputs) / characters if characters else None


def _prepare(out: Path) -> None:
    """Find out what keeps `out` from being written before hours of translating, not after."""
    if out.is_dir():
        raise ModelPackError(f"{out} is a folder; --out takes the name of a JSON file.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelPackError(f"{out} cannot be written: {out.parent} is not a folder ({error.strerror}).") from error
    if not os.access(out.parent, os.W_OK):
        raise ModelPackError(f"{out} cannot be written: you may not write in {out.parent}.")
