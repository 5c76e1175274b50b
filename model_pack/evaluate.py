"""Translates sets of sentences with packs, and has what comes out measured."""

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
from model_pack.dataset import Segment
from model_pack.errors import ModelPackError
from model_pack.files import write_atomically
from model_pack.metrics import Metrics, SetEvaluation, bleu_for, evaluate_set

_TOOLS = ("numpy", "onnxruntime", "sacrebleu")
_SEGMENTS_PER_CALL = 256  # enough to batch by length, few enough that the bar moves


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
        "bleu": _signature(bleu_for(target_language)),
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


def _signature(metric: BLEU | CHRF) -> str:
    metric.corpus_score(["a"], [["a"]])  # sacrebleu signs only what has been used: the number of references is in it
    return str(metric.get_signature())


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
