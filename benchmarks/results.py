"""What a run of the benchmark has found, as it is kept in bench.json and cold.json: raw samples included."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.machine import Machine
from benchmarks.plan import Row
from benchmarks.samples import Spread, ratios, spread
from model_pack.files import write_atomically


@dataclass(frozen=True)
class Sample:
    """One system's turn in one round."""

    round: int
    seconds: float
    cpu_seconds: float
    target_tokens: int  # of the whole batch; 0 for real text


@dataclass
class Measurement:
    """One system in one row.

    Attributes:
        configuration: what was found to be the fastest, of a system that is tuned.
        peak_rss_mb: the most memory of its processes since they started, in 10^6 bytes.
        texts: what it made of real text.
        failure: why it has no (more) samples.
    """

    system: str
    samples: list[Sample] = field(default_factory=list)
    configuration: str = ""
    peak_rss_mb: float = 0.0
    texts: list[str] = field(default_factory=list)
    failure: str = ""

    @property
    def seconds(self) -> dict[int, float]:
        """By round."""
        return {sample.round: sample.seconds for sample in self.samples}


@dataclass
class RowResult:
    """All systems in one row."""

    row: Row
    measurements: list[Measurement] = field(default_factory=list)

    def of(self, system: str) -> Measurement | None:
        """The system's measurement, if it has samples."""
        return next((found for found in self.measurements if found.system == system and found.samples), None)

    def milliseconds(self, system: str) -> Spread | None:
        """Of one sentence."""
        found = self.of(system)
        return spread([seconds / self.row.batch * 1000 for seconds in found.seconds.values()]) if found else None

    def ratio(self, system: str, to: str) -> Spread | None:
        """How many times as long `system` takes as `to`, round by round."""
        numerator, denominator = self.of(system), self.of(to)
        if not numerator or not denominator:
            return None
        found = ratios(numerator.seconds, denominator.seconds)
        return spread(found) if found else None


@dataclass
class Roofline:
    """The decoder step on one thread, beside one read of the bytes that it must read.

    Attributes:
        bytes: of the matrices that a step multiplies with.
        step_seconds: of the decoder's graph alone, by round.
        product_seconds: of its matrix products without anything between them, by round.
        read_seconds: of reading so many bytes, by round.
    """

    bytes: int
    step_seconds: list[float] = field(default_factory=list)
    product_seconds: list[float] = field(default_factory=list)
    read_seconds: list[float] = field(default_factory=list)

    def step_ratio(self) -> Spread:
        return self._to_reading(self.step_seconds)

    def product_ratio(self) -> Spread:
        return self._to_reading(self.product_seconds)

    def _to_reading(self, seconds: list[float]) -> Spread:
        return spread(ratios(dict(enumerate(seconds)), dict(enumerate(self.read_seconds))))


@dataclass
class Length:
    """One sentence of some length, by round."""

    source_tokens: int
    target_tokens: int
    seconds: list[float] = field(default_factory=list)


@dataclass
class BenchResult:
    """One run of `make bench`."""

    machine: Machine
    command: str
    date: str
    is_quick: bool
    is_complete: bool = False
    sizes_mb: dict[str, float] = field(default_factory=dict)  # by folder, 10^6 bytes
    rows: list[RowResult] = field(default_factory=list)
    roofline: Roofline | None = None
    lengths: list[Length] = field(default_factory=list)  # ours INT8, one thread
    single_request_rss_mb: float | None = None
    failures: dict[str, str] = field(default_factory=dict)  # of what is no row

    def row(self, row: Row) -> RowResult | None:
        return next((result for result in self.rows if result.row == row), None)

    def length(self, source_tokens: int, target_tokens: int) -> Length | None:
        wanted = (source_tokens, target_tokens)
        return next(
            (found for found in self.lengths if (found.source_tokens, found.target_tokens) == wanted and found.seconds),
            None,
        )

    def all_failures(self) -> Iterable[tuple[str, str]]:
        """What could not be measured, and why."""
        yield from self.failures.items()
        for result in self.rows:
            for measurement in result.measurements:
                if measurement.failure:
                    yield f"{measurement.system}, {result.row}", measurement.failure


@dataclass(frozen=True)
class ColdStart:
    """One process, from its start to the end of its first translation.

    Attributes:
        parts: milliseconds of each part, in their order.
        seconds: of all of them.
    """

    round: int
    seconds: float
    peak_rss_mb: float
    parts: dict[str, float]


@dataclass
class ColdMeasurement:
    """One system's cold starts."""

    system: str
    starts: list[ColdStart] = field(default_factory=list)
    failure: str = ""

    @property
    def seconds(self) -> dict[int, float]:
        """By round."""
        return {start.round: start.seconds for start in self.starts}


@dataclass
class ColdResult:
    """One run of `make bench-cold`."""

    machine: Machine
    command: str
    date: str
    is_quick: bool
    threads: int
    is_complete: bool = False
    measurements: list[ColdMeasurement] = field(default_factory=list)

    def of(self, system: str) -> ColdMeasurement | None:
        return next((found for found in self.measurements if found.system == system and found.starts), None)

    def ratio(self, system: str, to: str) -> Spread | None:
        numerator, denominator = self.of(system), self.of(to)
        if not numerator or not denominator:
            return None
        found = ratios(numerator.seconds, denominator.seconds)
        return spread(found) if found else None


def write_json(result: BenchResult | ColdResult, path: Path) -> None:
    write_atomically(path, json.dumps(asdict(result), ensure_ascii=False, indent=1) + "\n")
