"""The whole road: fetch, inspect, baseline, build, verify, evaluate, report, and a gate at its end."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from model_pack.baseline import write_baseline
from model_pack.build import build_pack
from model_pack.dataset import Segment
from model_pack.errors import ModelPackError
from model_pack.evaluate import Evaluation, evaluate_packs, markdown
from model_pack.fetch import fetch
from model_pack.inspect import inspect_checkpoint
from model_pack.quantization import Quantization
from model_pack.report import write_report
from model_pack.verify import verify_roads

MAX_CHRF_LOSS = 0.5  # points below FP32, on any set with references; noise between INT8 builds is about 0.3
MIN_IDENTICAL = 0.5  # share of a set's sentences that must come out as from FP32; sound INT8 packs have 0.6 to 0.9
MAX_MORE_LOOPS = 0.01  # share of a set's sentences that may loop in INT8 beyond those that loop in FP32


def make_pack(
    source: str | Path,
    revision: str | None,
    work: Path,
    precision: str,
    sets: Mapping[str, Sequence[Segment]],
    say: Callable[[str], None],
    *,
    force: bool,
) -> None:
    """Make a verified pack and its report in folder `work`.

    Each stage writes into `work` and can be interrupted; what is downloaded or translated by transformers is
    not done again. Where torch and transformers are missing, the stages that need them are left out, and said so.
    The pack stands in `work/int8` (or `work/fp32`) when it has passed; a refused one in `work/int8.refused`.

    Args:
        source: a model id on the hub, or a checkpoint folder.
        precision: "int8", or "fp32" for the fallback pack alone.
        sets: the sentences that decide.
        force: keep a pack that the gate refuses.

    Raises:
        ModelPackError: a stage fails, or the gate refuses the INT8 pack.
    """
    checkpoint = source if isinstance(source, Path) else work / "checkpoint"
    if not isinstance(source, Path):
        say(f"== Fetching {source}")
        fetch(source, revision, checkpoint, say)
    say("== Inspecting the checkpoint")
    inspect_checkpoint(checkpoint, work / "inspection.json", say)
    say("== Building the FP32 pack")
    fp32, candidate, int8 = work / "fp32", work / "int8.refused", work / "int8"
    build_pack(checkpoint, fp32, None, say)
    packs = {"fp32": fp32}
    if precision == "int8":
        say("== Building the INT8 pack")
        build_pack(checkpoint, candidate, Quantization(), say)
        packs["int8"] = candidate

    baseline = None
    if importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"):
        say("== Translating with transformers")
        baseline = work / "baseline.jsonl"
        segments = [segment for segments in sets.values() for segment in segments]
        write_baseline(checkpoint, segments, baseline, say)
        say("== Verifying against transformers")
        if not verify_roads(checkpoint, packs, None, segments, work / "verification.json", say):
            raise ModelPackError(f"the FP32 pack does not agree with transformers: see {work / 'verification.json'}.")
    else:
        say("== Not verified against transformers: torch and transformers are not installed here")

    say("== Evaluating")
    evaluation = evaluate_packs(packs, sets, baseline, work / "evaluation.json", say)
    say(markdown(evaluation))
    write_report(work / "evaluation.json", packs, work / "inspection.json", work / "report.html")
    say(f"Wrote {work / 'report.html'}")
    if precision == "int8":
        objections = gate(evaluation)
        for objection in objections:
            say(f"Objection: {objection}")
        if objections and not force:
            raise ModelPackError(
                f"the INT8 pack is refused and stays in {candidate}: {objections[0]} Look at {work / 'report.html'}; "
                "then leave sensitive layers out (quantize --exclude), serve the FP32 pack, or keep it with --force."
            )
        if int8.exists():
            shutil.rmtree(int8)
        candidate.rename(int8)
    say(f"The pack stands in {int8 if precision == 'int8' else fp32}")


def gate(evaluation: Evaluation) -> list[str]:
    """What speaks against the INT8 pack: it has lost too much chrF, says too often something else than FP32, or loops
    or is silent where FP32 is not."""
    objections = []
    for set_ in evaluation.sets:
        fp32, int8 = set_.systems["fp32"], set_.systems["int8"]
        if fp32.chrf is not None and int8.chrf is not None and fp32.chrf - int8.chrf > MAX_CHRF_LOSS:
            objections.append(
                f"on {set_.name} its chrF is {int8.chrf:.2f}, more than {MAX_CHRF_LOSS} below FP32's {fp32.chrf:.2f}."
            )
        if int8.identical_to_fp32 is not None and int8.identical_to_fp32 < MIN_IDENTICAL:
            objections.append(f"on {set_.name} only {int8.identical_to_fp32:.0%} of its outputs are FP32's.")
        allowed = fp32.loops + MAX_MORE_LOOPS * set_.segments
        if int8.loops > allowed:
            objections.append(f"on {set_.name} {int8.loops} outputs loop, of FP32's only {fp32.loops}.")
        if int8.empty > fp32.empty:
            objections.append(f"on {set_.name} {int8.empty} outputs are empty, of FP32's only {fp32.empty}.")
    return objections
