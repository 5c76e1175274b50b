"""Which rows are measured, and for how long: the full benchmark and its quick form."""

from __future__ import annotations

from dataclasses import dataclass

OPUS, STARTER = "opus", "starter"  # opus-mt-en-zh's size with random weights; the embedded model
TEXTS = 64
MAIN_SHAPE = (25, 30)
SHAPES = (MAIN_SHAPE, (5, 8), (80, 100))
BATCHES = (1, 8, 32)
THREADS = (1, 2)
ALONE, TOGETHER = "one by one", "together"


@dataclass(frozen=True)
class Row:
    """One piece of work, the same for all systems.

    Attributes:
        model: "opus" or "starter".
        batch: sentences.
        source_tokens, target_tokens: of each sentence; 0 where the row is of real text.
        text: how real text is handed over: "one by one" or "together"; empty for rows of token ids.
    """

    model: str
    threads: int
    batch: int
    source_tokens: int = 0
    target_tokens: int = 0
    text: str = ""

    @property
    def is_shareable(self) -> bool:
        """Whether several sentences are there at once."""
        return self.batch > 1 and self.text != ALONE

    @property
    def shape(self) -> tuple[int, int]:
        return self.source_tokens, self.target_tokens

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        if self.text:
            return f"{self.batch} real sentences {self.text}, {threads}"
        return f"{self.source_tokens} -> {self.target_tokens} tokens, batch {self.batch}, {threads}"


@dataclass(frozen=True)
class PlannedRow:
    """A row and how much of it is measured.

    Attributes:
        seconds: what its rounds may take; one that has begun is finished.
        fewest_rounds: whatever the seconds say.
        without_slow: whether slow systems are left out.
    """

    row: Row
    seconds: float
    fewest_rounds: int = 3
    without_slow: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything that one run measures.

    Attributes:
        groups: rows that share their worker processes, and so their model and threads.
        most_rounds: of a row, whatever its seconds say.
        calibration_seconds: for each configuration that may be the fastest.
        slow_every: slow systems take part in the first round and every so many rounds after.
        length_rounds: of the measurement of long sentences.
        step_rounds: of the decoder step beside the roofline.
        requests: single ones, for the memory that serving takes.
    """

    groups: tuple[tuple[PlannedRow, ...], ...]
    most_rounds: int
    slow_every: int
    calibration_seconds: float
    length_rounds: int
    step_rounds: int
    requests: int


def full_plan() -> Plan:
    groups = [
        tuple(_planned(Row(OPUS, threads, batch, *shape)) for shape in SHAPES for batch in BATCHES)
        for threads in THREADS
    ]
    groups += [
        tuple(PlannedRow(Row(STARTER, threads, TEXTS, text=text), 15) for text in (ALONE, TOGETHER))
        for threads in THREADS
    ]
    return Plan(
        tuple(groups),
        most_rounds=40,
        slow_every=4,
        calibration_seconds=1.0,
        length_rounds=7,
        step_rounds=25,
        requests=60,
    )


def _planned(row: Row) -> PlannedRow:
    if row.shape == MAIN_SHAPE:
        return PlannedRow(row, 38)
    if row.shape == (80, 100) and row.batch == max(BATCHES):
        return PlannedRow(row, 24, fewest_rounds=2, without_slow=True)  # a round may well take a minute
    return PlannedRow(row, 24 if row.shape == (80, 100) else 10)


def quick_plan() -> Plan:
    """The rows that the goals are about, and real text, in few rounds."""
    texts = (Row(STARTER, 2, TEXTS, text=text) for text in (ALONE, TOGETHER))
    groups = (
        (PlannedRow(Row(OPUS, 1, 1, *MAIN_SHAPE), 5, without_slow=True),),
        (
            PlannedRow(Row(OPUS, 2, 1, *MAIN_SHAPE), 7),
            PlannedRow(Row(OPUS, 2, 32, *MAIN_SHAPE), 8, fewest_rounds=2, without_slow=True),
        ),
        tuple(PlannedRow(row, 3, fewest_rounds=2, without_slow=True) for row in texts),
    )
    return Plan(
        groups, most_rounds=15, slow_every=4, calibration_seconds=0.2, length_rounds=2, step_rounds=10, requests=15
    )
