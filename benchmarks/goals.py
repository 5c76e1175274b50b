"""What the project wants of its speed, size and memory, beside what was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import systems
from benchmarks.plan import MAIN_SHAPE, OPUS, Row
from benchmarks.results import BenchResult, ColdResult
from benchmarks.samples import Spread, spread

_MB = "in MB of 1,048,576 bytes"  # as AWS counts its limits


@dataclass(frozen=True)
class Goal:
    """One goal.

    Attributes:
        what: in the report's words.
        limit: the value that is wanted, or better.
        at_least: whether more is better.
        unit: "x" or "MB".
        measured: the value with its quartiles; None where it was not measured.
    """

    what: str
    limit: float
    at_least: bool
    unit: str
    measured: Spread | None

    @property
    def is_met(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured.median >= self.limit if self.at_least else self.measured.median <= self.limit


def goals(result: BenchResult, cold: ColdResult | None) -> list[Goal]:
    """Every goal, also those that this run has not measured."""

    def faster_than(what: str, limit: float, threads: int, system: str, batch: int = 1) -> Goal:
        found = result.row(Row(OPUS, threads, batch, *MAIN_SHAPE))
        return Goal(what, limit, True, "x", found.ratio(system, systems.OURS) if found else None)

    cold_ratio = cold.ratio(systems.OURS, systems.CTRANSLATE2_COLD) if cold else None
    memory, size = result.single_request_rss_mb, result.sizes_mb.get(f"{OPUS}-ours-int8")
    return [
        faster_than(
            "one sentence, 1 thread: times as fast as CTranslate2 INT8 as it comes", 2.5, 1, systems.CTRANSLATE2
        ),
        faster_than(
            "one sentence, 2 threads: times as fast as CTranslate2 INT8 at its best", 2.5, 2, systems.CTRANSLATE2_BEST
        ),
        faster_than(
            "one sentence, 1 thread: times as fast as CTranslate2 INT8 at its best with the same vocabulary rows",
            1.3, 1, systems.CTRANSLATE2_SAME_ROWS,
        ),
        faster_than(
            "batch 32, 2 threads: times as fast as CTranslate2 INT8 at its best with the same vocabulary rows",
            1.1, 2, systems.CTRANSLATE2_SAME_ROWS, batch=32,
        ),
        faster_than("one sentence, 2 threads: times as fast as optimum INT8", 6, 2, systems.OPTIMUM),
        faster_than("one sentence, 2 threads: times as fast as the three-file loop INT8", 2, 2, systems.LOOP),
        Goal(
            "decoder step, 1 thread: times the reading of its weights", 1.4, False, "x",
            result.roofline.step_ratio() if result.roofline and result.roofline.read_seconds else None,
        ),
        Goal("process start to first translation: times CTranslate2's", 0.65, False, "x", cold_ratio),
        Goal(f"peak RSS of serving single requests, {_MB}", 150, False, "MB", _in_aws_megabytes(memory)),
        Goal(f"the INT8 pack, {_MB}", 79, False, "MB", _in_aws_megabytes(size)),
        Goal(
            "a target token in a sentence of 400 of them: times as long as in one of 40", 1.3, False, "x",
            target_linearity(result),
        ),
        Goal(
            "a source token in a sentence of 400 of them, to the first target token: times as long as in one of 40",
            1.3, False, "x", source_linearity(result),
        ),
    ]  # fmt: skip


def target_linearity(result: BenchResult) -> Spread | None:
    """Milliseconds a target token, 400 of them beside 40, with 25 source tokens: the whole sentence's time counts."""
    return _by_round(result, [(25, 400), (25, 40)], lambda long, short: (long / 400) / (short / 40))


def source_linearity(result: BenchResult) -> Spread | None:
    """Milliseconds a source token, 400 of them beside 40, until the first target token is there."""
    return _by_round(result, [(400, 1), (40, 1)], lambda long, short: (long / 400) / (short / 40))


def source_growth(result: BenchResult) -> Spread | None:
    """What a further source token adds, from 40 to 400 beside from 4 to 40, until the first target token is there."""
    return _by_round(
        result,
        [(400, 1), (40, 1), (4, 1)],
        lambda long, middle, short: ((long - middle) / 360) / ((middle - short) / 36),
    )


def _by_round(result: BenchResult, lengths: list[tuple[int, int]], value: Callable[..., float]) -> Spread | None:
    found = [result.length(*length) for length in lengths]
    samples = [length.seconds for length in found if length]
    if len(samples) < len(lengths):
        return None
    values = [value(*seconds) for seconds in zip(*samples, strict=False)]
    # A round in which the longer sentence took less time says nothing about the cost of a token.
    sound = [ratio for ratio in values if ratio > 0]
    return spread(sound) if sound else None


def _in_aws_megabytes(megabytes: float | None) -> Spread | None:
    """Those of 10^6 bytes as those of 1,048,576."""
    if megabytes is None:
        return None
    value = megabytes * 1e6 / (1 << 20)
    return Spread(value, value, value, 1)
