"""Holds every road beside transformers: the tensors within a tolerance, the greedy ids to the letter."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from function.engine.pack import PackError
from function.service.settings import vcpu_count
from model_pack.checkpoint import Checkpoint, read_checkpoint
from model_pack.dataset import Segment
from model_pack.errors import ModelPackError
from model_pack.files import write_atomically
from model_pack.roads import Array, Batch, OptimumRoad, PackRoad, Road, Trace, TransformersRoad

TOLERANCE = 5e-4  # of float32 tensors, against the reference's magnitude or 1; random weights come to 1.6e-4 (AVX2)
_BATCH_SIZE = 4


@dataclass(frozen=True)
class Sentence:
    id: str
    source_ids: list[int]


@dataclass(frozen=True)
class Difference:
    """The first step at which a road's greedy ids leave the reference's."""

    sentence: str
    step: int
    reference: str  # pieces; empty where the sentence has ended
    road: str


@dataclass(frozen=True)
class Verdict:
    """How one road compares with the reference."""

    road: str
    exact: bool  # whether it has to agree; a quantised road only reports
    encoder_states: float  # greatest differences
    cross_attention: float
    past: float
    logits: float
    identical: int  # sentences with the reference's greedy ids
    sentences: int
    first_differences: list[Difference]

    @property
    def passed(self) -> bool:
        greatest = max(self.encoder_states, self.cross_attention, self.past, self.logits)
        return not self.exact or (greatest <= TOLERANCE and self.identical == self.sentences)


def verify_roads(
    checkpoint_path: Path,
    packs: dict[str, Path],
    optimum: Path | None,
    segments: Sequence[Segment],
    out: Path | None,
    say: Callable[[str], None],
) -> bool:
    """Hold packs and optimum's export beside transformers; whether every float32 one agrees with it.

    Args:
        packs: pack folders by name. One that is not float32 is reported on, and cannot fail.
        optimum: folder of optimum's export.
        segments: the sentences to compare on.
        out: file for the verdicts as JSON.

    Raises:
        ModelPackError: nothing to compare, transformers missing, or a folder that was not built from the checkpoint.
    """
    if not packs and optimum is None:
        raise ModelPackError("nothing to verify: name packs with --pack NAME=DIR, or optimum's folder with --optimum.")
    checkpoint = read_checkpoint(checkpoint_path)
    threads = vcpu_count()
    roads: dict[str, tuple[Road, bool]] = {}
    try:
        for name, path in packs.items():
            road = PackRoad(checkpoint, path, threads)
            roads[name] = road, road.precision == "fp32"
    except PackError as error:
        raise ModelPackError(str(error)) from error
    if optimum is not None:
        roads["optimum"] = OptimumRoad(checkpoint, optimum, threads), True
    reference = TransformersRoad(checkpoint)
    sentences = [Sentence(segment.id, reference.encode(segment.source)) for segment in segments]
    return all(verdict.passed for verdict in verify(checkpoint, reference, roads, sentences, out, say))


def verify(
    checkpoint: Checkpoint,
    reference: Road,
    roads: dict[str, tuple[Road, bool]],
    sentences: Sequence[Sentence],
    out: Path | None,
    say: Callable[[str], None],
) -> list[Verdict]:
    """Compare roads with a reference.

    Args:
        roads: each by name, and whether it has to agree (False for a quantised one).
        out: file for the verdicts as JSON.
    """
    config = checkpoint.config
    expected = [reference.greedy_ids(s.source_ids) for s in tqdm(sentences, desc="reference", unit="sentence")]
    batches = [
        _batch(
            sentences[start : start + _BATCH_SIZE], expected[start : start + _BATCH_SIZE], config.decoder_start_token_id
        )
        for start in range(0, len(sentences), _BATCH_SIZE)
    ]
    traces = [reference.trace(batch) for batch in tqdm(batches, desc="reference", unit="batch")]
    pieces = {id_: piece for piece, id_ in checkpoint.target_vocabulary.items()}
    verdicts = []
    for name, (road, exact) in roads.items():
        greatest = np.zeros(4)
        for batch, trace in zip(tqdm(batches, desc=name, unit="batch"), traces, strict=True):
            greatest = np.maximum(greatest, _differences(batch, trace, road.trace(batch)))
        differing = []
        for sentence, ids in zip(tqdm(sentences, desc=name, unit="sentence"), expected, strict=True):
            if (got := road.greedy_ids(sentence.source_ids)) != ids:
                differing.append(_first_difference(sentence.id, ids, got, pieces))
        encoder_states, cross_attention, past, logits = map(float, greatest)
        identical = len(sentences) - len(differing)
        verdicts.append(
            Verdict(name, exact, encoder_states, cross_attention, past, logits, identical, len(sentences), differing)
        )
    if out is not None:
        content = [{**asdict(verdict), "passed": verdict.passed} for verdict in verdicts]
        write_atomically(out, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    for line in describe(verdicts):
        say(line)
    return verdicts


def describe(verdicts: Sequence[Verdict]) -> list[str]:
    """The verdicts as lines: a table, then where each road first differs."""
    lines = [f"{'road':<14}{'encoder':>10}{'cross k/v':>11}{'past k/v':>10}{'logits':>10}{'greedy ids':>13}"]
    for verdict in verdicts:
        figures = (verdict.encoder_states, verdict.cross_attention, verdict.past, verdict.logits)
        encoder, cross, past, logits = (f"{figure:.1e}" for figure in figures)
        agreement = f"{verdict.identical}/{verdict.sentences}"
        judgement = ("ok" if verdict.passed else "FAILED") if verdict.exact else "quantised"
        lines.append(f"{verdict.road:<14}{encoder:>10}{cross:>11}{past:>10}{logits:>10}{agreement:>13}  {judgement}")
    for verdict in verdicts:
        for difference in verdict.first_differences[:3]:
            lines.append(
                f"{verdict.road}: {difference.sentence} differs from step {difference.step}: "
                f"{difference.reference!r} became {difference.road!r}"
            )
        if (more := len(verdict.first_differences) - 3) > 0:
            lines.append(f"{verdict.road}: {more} more sentences differ")
    return lines


def _batch(sentences: Sequence[Sentence], target_ids: Sequence[list[int]], start_id: int) -> Batch:
    longest_source = max(len(sentence.source_ids) for sentence in sentences)
    longest_target = max(map(len, target_ids))
    source_ids = np.zeros((len(sentences), longest_source), np.int64)
    mask = np.zeros((len(sentences), longest_source), np.int32)
    decoder_ids = np.full((len(sentences), longest_target), start_id, np.int64)
    for row, (sentence, ids) in enumerate(zip(sentences, target_ids, strict=True)):
        source_ids[row, : len(sentence.source_ids)] = sentence.source_ids
        mask[row, : len(sentence.source_ids)] = 1
        decoder_ids[row, 1 : len(ids)] = ids[:-1]
    return Batch(source_ids, mask, decoder_ids)


def _differences(batch: Batch, reference: Trace, trace: Trace) -> list[float]:
    """Greatest differences of encoder states, cross keys/values, past keys/values and logits.

    Source padding does not count. Rows that have ended go on with decoder start tokens, and do count.
    """
    real = batch.attention_mask.astype(bool)  # [B, S]
    columns = trace.logit_ids
    return [
        _greatest(reference.encoder_states[real], trace.encoder_states[real]),
        max(
            _greatest(a.transpose(0, 2, 1, 3)[real], b.transpose(0, 2, 1, 3)[real])
            for a, b in zip(reference.cross, trace.cross, strict=True)
        ),
        max(_greatest(a, b) for a, b in zip(reference.past, trace.past, strict=True)),
        _greatest(reference.logits[..., columns], trace.logits),
    ]


def _greatest(reference: Array, other: Array) -> float:
    return float((np.abs(reference - other) / np.maximum(np.abs(reference), 1)).max())


def _first_difference(sentence: str, reference: list[int], got: list[int], pieces: dict[int, str]) -> Difference:
    for step, (a, b) in enumerate(zip(reference, got, strict=False)):
        if a != b:
            return Difference(sentence, step, pieces.get(a, ""), pieces.get(b, ""))
    step = min(len(reference), len(got))
    return Difference(
        sentence,
        step,
        pieces.get(reference[step], "") if step < len(reference) else "",
        pieces.get(got[step], "") if step < len(got) else "",
    )
