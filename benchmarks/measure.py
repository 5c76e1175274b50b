"""Takes the samples: every round runs every system once, so that what slows the machine slows them all."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks.models import Models, bytes_of_a_step, target_rows
from benchmarks.plan import ALONE, MAIN_SHAPE, OPUS, TEXTS, Plan, PlannedRow, Row
from benchmarks.processes import Launch, Worker, WorkerError
from benchmarks.results import BenchResult, Length, Measurement, Roofline, RowResult, Sample
from benchmarks.systems import Configuration, System, configurations
from benchmarks.work import Answer, Decode, Products, Read, Steps, Translate, Work

EVALUATION_TEXTS = Path(__file__).parent.parent / "model_pack" / "starter" / "eval" / "test_tatoeba.tsv"

# One sentence each, (source, target) tokens: what a token costs in short sentences and in long ones. Those of one
# target token tell what source tokens cost: beside 30 steps of the decoder, a few of them would not be seen.
LENGTHS = ((25, 40), (25, 400), (40, 30), (400, 30), (4, 1), (40, 1), (400, 1))

_SETTLE_SECONDS = 0.06  # threads of the last system may still spin when its answer is there
_CALIBRATION_RUNS = 3
_STEPS_A_ROUND = 20
_SHORT_RUNS = 3
_REQUEST_WORDS = (3, 8, 20)

Tell = Callable[[str], None]


def measure_group(
    rows: Sequence[PlannedRow], systems: Sequence[System], plan: Plan, models: Models, result: BenchResult, tell: Tell
) -> Iterator[PlannedRow]:
    """Measure rows of one model and one number of threads; yields each when it is done.

    Samples are put into `result` as they are taken, so that an interruption keeps them.

    Args:
        tell: called with what is being done.
    """
    model, threads = rows[0].row.model, rows[0].row.threads
    taking_part = [
        system
        for system in systems
        if any(system.takes_part(planned.row) and not (planned.without_slow and system.is_slow) for planned in rows)
    ]
    crew = _Crew(models, model, threads)
    try:
        tell("loading")
        crew.hire([(system, option) for system in taking_part for option in _options(system, rows)])
        for planned in rows:
            present = [
                system
                for system in taking_part
                if system.takes_part(planned.row) and not (planned.without_slow and system.is_slow)
            ]
            row_result = RowResult(planned.row)
            result.rows.append(row_result)
            _measure_row(planned, present, plan, crew, row_result, work_of(planned.row, models), tell)
            yield planned
    finally:
        crew.dismiss()


def work_of(row: Row, models: Models) -> Work:
    """The row's work: always the same for the same row."""
    if row.text:
        return Translate(evaluation_texts()[: row.batch], together=row.text != ALONE)
    # Ids that every system's vocabulary has, also the one that is cut.
    generator = np.random.default_rng(row.batch)
    rows = target_rows(models.path(f"{OPUS}-ours-int8"))
    ids = generator.integers(2, rows - 1, (row.batch, row.source_tokens))
    ids[:, -1] = 0  # eos
    return Decode(ids.tolist(), row.target_tokens)


def evaluation_texts() -> list[str]:
    with EVALUATION_TEXTS.open(encoding="utf-8", newline="") as file:
        return [line["en"] for line in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)][:TEXTS]


class _Crew:
    """The worker processes of one group, loaded once. Those that differ in `max_batch_size` alone are the same."""

    def __init__(self, models: Models, model: str, threads: int) -> None:
        self._models = models
        self._model = model
        self._threads = threads
        self._workers: dict[tuple[str, tuple[int, int] | None], Worker] = {}
        self.failures: dict[str, str] = {}  # by system

    def hire(self, wanted: Sequence[tuple[System, Configuration | None]]) -> None:
        for system, configuration in wanted:
            key = _key(system, configuration)
            if key not in self._workers:
                launch = system.launch(self._models, self._model, self._threads, configuration)
                self._workers[key] = Worker(launch)
        for key, worker in self._workers.items():  # they have been loading side by side
            try:
                worker.wait_until_ready()
            except WorkerError as error:
                self.failures[key[0]] = str(error)

    def worker(self, system: System, configuration: Configuration | None) -> Worker:
        return self._workers[_key(system, configuration)]

    def dismiss(self) -> None:
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()


def _key(system: System, configuration: Configuration | None) -> tuple[str, tuple[int, int] | None]:
    return system.name, (configuration.inter_threads, configuration.intra_threads) if configuration else None


def _options(system: System, rows: Sequence[PlannedRow]) -> list[Configuration | None]:
    if not system.is_tuned:
        return [None]
    return [configuration for planned in rows for configuration in configurations(planned.row)]


def _measure_row(
    planned: PlannedRow, systems: Sequence[System], plan: Plan, crew: _Crew, result: RowResult, work: Work, tell: Tell
) -> None:
    row = planned.row
    workers: dict[str, Worker] = {}
    measurements = {system.name: Measurement(system.name) for system in systems}
    result.measurements.extend(measurements.values())
    for system in systems:
        measurement = measurements[system.name]
        with _noting_failure(measurement):
            if system.name in crew.failures:
                raise WorkerError(crew.failures[system.name])
            tell(f"{row}: preparing {system.name}")
            configuration = _fastest(crew, system, row, work, plan.calibration_seconds) if system.is_tuned else None
            measurement.configuration = str(configuration or "")
            worker = crew.worker(system, configuration)
            worker.prepare(_configured(work, configuration))
            workers[system.name] = worker

    started = time.monotonic()
    for number in count():
        is_enough = number >= planned.fewest_rounds and time.monotonic() - started > planned.seconds
        if is_enough or number >= plan.most_rounds:
            return
        for system in systems:
            if system.name not in workers or (system.is_slow and number % plan.slow_every):
                continue
            tell(f"{row}: round {number + 1}, {system.name}")
            measurement = measurements[system.name]
            with _noting_failure(measurement):
                answer = _run(workers[system.name], work)
                tokens = sum(answer.output.lengths)
                measurement.samples.append(Sample(number, answer.seconds, answer.cpu_seconds, tokens))
                measurement.peak_rss_mb = answer.peak_rss_mb
                measurement.texts = answer.output.texts
            if measurement.failure:
                del workers[system.name]


@contextmanager
def _noting_failure(measurement: Measurement) -> Iterator[None]:
    """What one system cannot do is no reason not to measure the others."""
    try:
        yield
    except WorkerError as error:
        measurement.failure = str(error)


def _run(worker: Worker, work: Work) -> Answer:
    time.sleep(_SETTLE_SECONDS)
    answer = worker.run()
    check_output(answer, work)
    return answer


def check_output(answer: Answer, work: Work) -> None:
    """Raises: WorkerError, when not all of the work was done."""
    if isinstance(work, Decode) and answer.output.lengths != [work.target_tokens] * len(work.sources):
        raise WorkerError(f"decoded {answer.output.lengths} tokens, not {work.target_tokens} each")
    if isinstance(work, Translate) and len(answer.output.texts) != len(work.texts):
        raise WorkerError(f"gave {len(answer.output.texts)} texts for {len(work.texts)}")


def _configured(work: Work, configuration: Configuration | None) -> Work:
    if configuration and isinstance(work, Decode | Translate):
        return replace(work, max_batch_size=configuration.max_batch_size)
    return work


def _fastest(crew: _Crew, system: System, row: Row, work: Work, enough_seconds: float) -> Configuration:
    """Try the configurations for so many seconds each, on as many target tokens as the main shape has at the most."""
    if isinstance(work, Decode):
        work = replace(work, target_tokens=min(work.target_tokens, MAIN_SHAPE[1]))
    least: dict[Configuration, float] = {}
    for configuration in configurations(row):
        worker = crew.worker(system, configuration)
        worker.prepare(_configured(work, configuration))
        started = time.monotonic()
        for _ in range(_CALIBRATION_RUNS):
            seconds = _run(worker, work).seconds
            least[configuration] = min(seconds, least.get(configuration, seconds))
            if time.monotonic() - started > enough_seconds:
                break
    return min(least, key=least.__getitem__)


@contextmanager
def _one_thread(models: Models, *backends: str) -> Iterator[list[Worker]]:
    """Our INT8 pack of opus size, or what else, each in a fresh process with one thread."""
    model, checkpoint = models.path(f"{OPUS}-ours-int8"), models.path(f"{OPUS}-checkpoint")
    workers = [Worker(Launch(backend, model, checkpoint, threads=1)) for backend in backends]
    try:
        for worker in workers:
            worker.wait_until_ready()
        yield workers
    finally:
        for worker in workers:
            worker.close()


def measure_roofline(plan: Plan, models: Models, result: BenchResult) -> None:
    """The decoder step in the middle of a sentence of the main shape, its products, and reading its weights."""
    source_tokens, target_tokens = MAIN_SHAPE
    size = bytes_of_a_step(models.path(f"{OPUS}-ours-int8"))
    result.roofline = roofline = Roofline(size)
    with _one_thread(models, "ours", "ours", "memory") as (ours, products, memory):
        ours.prepare(Steps(source_tokens, target_tokens // 2, _STEPS_A_ROUND))
        products.prepare(Products(_STEPS_A_ROUND))
        memory.prepare(Read(size, _STEPS_A_ROUND))
        for _ in range(plan.step_rounds):
            step, product, read = (worker.run().seconds / _STEPS_A_ROUND for worker in (ours, products, memory))
            roofline.step_seconds.append(step)
            roofline.product_seconds.append(product)
            roofline.read_seconds.append(read)


def measure_lengths(plan: Plan, models: Models, result: BenchResult) -> None:
    """One sentence of each of LENGTHS, in turn; of the short runs, the least of some in each round."""
    result.lengths = [Length(*length) for length in LENGTHS]
    with _one_thread(models, "ours") as (ours,):
        for _ in range(plan.length_rounds):
            for length in result.lengths:
                work = work_of(Row(OPUS, 1, 1, length.source_tokens, length.target_tokens), models)
                ours.prepare(work)
                runs = _SHORT_RUNS if length.target_tokens == 1 else 1
                length.seconds.append(min(_run(ours, work).seconds for _ in range(runs)))


def measure_single_requests(plan: Plan, models: Models, result: BenchResult) -> None:
    """A process that serves one text at a time, of several lengths: the memory that this takes."""
    words = " ".join(evaluation_texts()).split()
    with _one_thread(models, "ours") as (ours,):
        for number in range(plan.requests):
            text = " ".join(words[number : number + _REQUEST_WORDS[number % len(_REQUEST_WORDS)]])
            ours.prepare(Translate([text], together=True, target_tokens=MAIN_SHAPE[1]))
            result.single_request_rss_mb = ours.run().peak_rss_mb
