"""The benchmark as its user meets it: what it measures with, what it writes, and what it says when it cannot."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import bench, processes, systems
from benchmarks.backend import Job
from benchmarks.cut_vocabulary import cut_vocabulary
from benchmarks.errors import BenchError
from benchmarks.goals import Goal, goals
from benchmarks.machine import Machine
from benchmarks.measure import check_output
from benchmarks.models import Models, Recipe, bytes_of_a_step, target_rows
from benchmarks.plan import MAIN_SHAPE, OPUS, STARTER, TOGETHER, Row, full_plan, quick_plan
from benchmarks.processes import Launch, Worker, WorkerError, python_for
from benchmarks.records import from_json
from benchmarks.report import bench_report, cold_report
from benchmarks.results import (
    BenchResult,
    ColdMeasurement,
    ColdResult,
    ColdStart,
    Length,
    Measurement,
    Roofline,
    RowResult,
    Sample,
)
from benchmarks.samples import Spread, ratios, spread
from benchmarks.systems import Configuration, configurations
from benchmarks.work import Answer, Decode, Output, Read, Steps, Translate, Work
from benchmarks.worker import serve
from model_pack.checkpoint import read_checkpoint
from model_pack.random_checkpoint import write_random_checkpoint
from tests.paths import ROOT
from tests.paths import STARTER as STARTER_CHECKPOINT

MACHINE = Machine(
    processor="A processor",
    flags=["avx2"],
    cores=2,
    memory_gb=8.0,
    kernel="6.1",
    python="3.11.7",
    ours={"onnxruntime": "1.0"},
    peers={"ctranslate2": "4.0"},
)
ONE_SENTENCE = Row(OPUS, 1, 1, *MAIN_SHAPE)
BULK = Row(OPUS, 2, 32, *MAIN_SHAPE)


def measurement(system: str, *milliseconds: float, first_round: int = 0) -> Measurement:
    samples = [Sample(first_round + index, value / 1000, value / 1000, 30) for index, value in enumerate(milliseconds)]
    return Measurement(system, samples, peak_rss_mb=100)


@pytest.fixture
def result() -> BenchResult:
    alone = [
        measurement(systems.OURS, 100, 200, 100),
        measurement(systems.CTRANSLATE2, 300, 600, 330),
        measurement(systems.TRANSFORMERS, 900),
        Measurement(systems.LOOP, failure="ran out of memory"),
    ]
    together = [
        measurement(systems.OURS, 320, 320),
        replace(measurement(systems.CTRANSLATE2_SAME_ROWS, 384, 384), configuration=str(Configuration(2, 1, 16))),
    ]
    texts = [replace(measurement(name, 64, 64), texts=["甲", "乙"]) for name in (systems.OURS, systems.OURS_FP32)]
    texts[0].texts = ["甲", "丙"]
    return BenchResult(
        MACHINE,
        "python -m benchmarks.bench",
        "2026-01-01 00:00 UTC",
        is_quick=False,
        is_complete=True,
        sizes_mb={f"{OPUS}-ours-int8": 84.0},
        rows=[
            RowResult(ONE_SENTENCE, alone),
            RowResult(BULK, together),
            RowResult(Row(STARTER, 1, 2, text=TOGETHER), texts),
        ],
        roofline=Roofline(38_400_000, [0.003, 0.004], [0.002, 0.003], [0.002, 0.002]),
        lengths=[
            Length(25, 40, [0.04, 0.04]),
            Length(25, 400, [0.48, 0.48]),
            Length(40, 1, [0.02]),
            Length(400, 1, [0.22]),
        ],
        single_request_rss_mb=149.0,
    )


@pytest.fixture
def cold() -> ColdResult:
    def starts(seconds: float, count: int) -> list[ColdStart]:
        return [ColdStart(number, seconds, 140.0, {"imports": 100.0, "model": 200.0}) for number in range(count)]

    found = [
        ColdMeasurement(systems.OURS, starts(0.3, 3)),
        ColdMeasurement(systems.CTRANSLATE2_COLD, starts(0.6, 3)),
        ColdMeasurement(systems.OPTIMUM, failure="no such file"),
    ]
    return ColdResult(MACHINE, "python -m benchmarks.cold", "2026-01-01 00:00 UTC", False, 2, True, found)


# Samples


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([4.0], Spread(4.0, 4.0, 4.0, 1)),
        ([1.0, 2.0, 3.0, 4.0, 5.0], Spread(3.0, 2.0, 4.0, 5)),
        ([4.0, 1.0, 3.0, 2.0], Spread(2.5, 1.75, 3.25, 4)),
    ],
)
def test_a_spread_is_the_median_and_the_quartiles(values: list[float], expected: Spread) -> None:
    assert spread(values) == expected


def test_there_is_no_spread_of_nothing() -> None:
    with pytest.raises(ValueError, match="no samples"):
        spread([])


def test_ratios_are_taken_in_the_rounds_that_both_were_in() -> None:
    assert ratios({0: 3.0, 4: 8.0, 5: 1.0}, {0: 1.0, 1: 9.0, 4: 2.0}) == [3.0, 4.0]


def test_a_slow_round_does_not_change_a_ratio(result: BenchResult) -> None:
    row = result.row(ONE_SENTENCE)
    assert row is not None

    ratio = row.ratio(systems.CTRANSLATE2, systems.OURS)

    assert ratio is not None
    assert ratio.median == pytest.approx(3.0)
    assert ratio.count == 3


# What is measured


def test_every_configuration_of_ctranslate2_keeps_to_the_threads_and_shares_the_batch() -> None:
    for plan in (full_plan(), quick_plan()):
        for row in (planned.row for group in plan.groups for planned in group):
            found = configurations(row)
            assert len(set(found)) == len(found)
            for configuration in found:
                assert configuration.inter_threads * configuration.intra_threads <= row.threads
                # Batches side by side need a batch that is cut.
                assert configuration.inter_threads == 1 or 0 < configuration.max_batch_size < row.batch


def test_a_group_has_one_model_and_one_number_of_threads() -> None:
    for plan in (full_plan(), quick_plan()):
        for group in plan.groups:
            assert len({(planned.row.model, planned.row.threads) for planned in group}) == 1


def test_too_few_tokens_are_not_a_measurement() -> None:
    answer = Answer(1.0, 1.0, 100.0, Output(lengths=[30, 29]))

    with pytest.raises(WorkerError, match=r"\[30, 29\]"):
        check_output(answer, Decode([[1], [2]], 30))


def test_the_roofline_counts_each_matrix_that_a_step_multiplies_with(int8_pack: Path, fp32_pack: Path) -> None:
    config = json.loads((STARTER_CHECKPOINT / "config.json").read_text("utf-8"))
    width, hidden = config["d_model"], config["decoder_ffn_dim"]
    rows = len((int8_pack / "target_vocabulary.txt").read_text("utf-8").split("\n"))
    # q, k, v and output of self-attention, q and output of cross-attention, and the feed-forward pair.
    elements = config["decoder_layers"] * (6 * width * width + 2 * width * hidden) + rows * width

    assert target_rows(int8_pack) == rows
    assert bytes_of_a_step(int8_pack) == elements
    assert bytes_of_a_step(fp32_pack) == 4 * elements


def test_a_checkpoint_with_a_cut_vocabulary_is_sound(tmp_path: Path) -> None:
    write_random_checkpoint(str(STARTER_CHECKPOINT), tmp_path / "whole", lambda _: None)

    cut_vocabulary(tmp_path / "whole", tmp_path / "cut", 5000)

    checkpoint = read_checkpoint(tmp_path / "cut")
    assert checkpoint.embeddings.head.shape == (5000, 256)
    assert checkpoint.target_vocabulary["<pad>"] == 4999
    assert len(checkpoint.target_vocabulary) == 5000


def test_models_are_made_once_and_again_when_what_they_are_made_from_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    models = Models(tmp_path / "models", said.append)
    source = tmp_path / "source.txt"
    source.write_text("1")

    def make(_: Models, out: Path) -> None:
        out.mkdir()
        (out / "file").write_text(source.read_text())

    monkeypatch.setattr("benchmarks.models.ROOT", tmp_path)
    monkeypatch.setattr("benchmarks.models.RECIPES", {"a": Recipe(("source.txt",), (), make)})
    models.prepare(["a"])
    models.prepare(["a"])
    assert said == ["Preparing a"]

    source.write_text("2")
    models.prepare(["a"])
    assert said == ["Preparing a"] * 2
    assert (models.path("a") / "file").read_text() == "2"


# Worker processes


@contextmanager
def worker(model: Path) -> Iterator[Worker]:
    found = Worker(Launch("ours", model, STARTER_CHECKPOINT, threads=1))
    try:
        found.wait_until_ready()
        yield found
    finally:
        found.close()


def test_a_worker_does_what_it_is_asked(int8_pack: Path) -> None:
    with worker(int8_pack) as ours:
        ours.prepare(Decode([[5, 6, 0], [7, 0]], 6))
        answer = ours.run()
        assert answer.output.lengths == [6, 6]
        assert 0 < answer.seconds < 10
        assert 20 < answer.peak_rss_mb < 1000

        ours.prepare(Translate(["Good morning.", "Good morning."], together=False))
        texts = ours.run().output.texts
        assert len(texts) == 2
        assert texts[0] == texts[1] != ""

        ours.prepare(Steps(source_tokens=3, past_tokens=2, repeats=2))
        assert ours.run().output == Output()

        with pytest.raises(WorkerError, match="Read is no work for the engine"):
            ours.prepare(Read(1 << 20, 1))
        assert ours.run().output == Output(), "what was prepared before is still there"


def test_what_a_worker_decodes_is_what_it_is_asked_next(int8_pack: Path) -> None:
    with worker(int8_pack) as ours:
        for target_tokens in (3, 5, 3):
            ours.prepare(Decode([[5, 0], [6, 0], [7, 0]], target_tokens))

            assert ours.run().output.lengths == [target_tokens] * 3


def test_a_worker_says_why_it_cannot_load(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="is not a model pack"), worker(tmp_path):
        pass


def test_a_worker_process_that_ends_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PEERS_PYTHON", Path(sys.executable))  # theirs may not be set up
    found = Worker(Launch("no-such-system", ROOT, ROOT, threads=1))
    try:
        with pytest.raises(WorkerError, match="KeyError: 'no-such-system'"):
            found.wait_until_ready()
        with pytest.raises(WorkerError, match="ended with 0"):
            found.run()
    finally:
        found.close()


def test_the_line_protocol() -> None:
    class Backend:
        def job(self, work: Work) -> Job:
            assert isinstance(work, Decode)
            return lambda: Output(lengths=[work.target_tokens] * len(work.sources))

    prepare = {"prepare": {"kind": "Decode", "sources": [[1, 0], [2, 0]], "target_tokens": 9}}
    requests = "\n".join(map(json.dumps, [{"run": True}, {"prepare": {"kind": "Sing"}}, prepare, {"run": True}]))
    answers = io.StringIO()

    serve(Backend, io.StringIO(requests), answers)

    ready, nothing, unknown, prepared, done = map(json.loads, answers.getvalue().splitlines())
    assert ready == {"ready": True}
    assert "nothing was prepared" in nothing["error"]
    assert "Sing" in unknown["error"]
    assert prepared == {"prepared": True}
    assert done["output"] == {"lengths": [9, 9], "texts": []}
    assert set(done) == {"seconds", "cpu_seconds", "peak_rss_mb", "output"}


# What is written


def test_results_come_back_from_json(result: BenchResult, cold: ColdResult) -> None:
    assert from_json(BenchResult, json.loads(json.dumps(asdict(result)))) == result
    assert from_json(ColdResult, json.loads(json.dumps(asdict(cold)))) == cold


def test_the_goals_are_judged_by_what_was_measured(result: BenchResult, cold: ColdResult) -> None:
    found = goals(result, cold)

    def goal(words: str) -> Goal:
        (one,) = (goal for goal in found if words in goal.what)
        return one

    assert goal("1 thread: times as fast as CTranslate2 INT8 as it comes").is_met is True
    assert goal("one sentence, 2 threads: times as fast as CTranslate2 INT8 at its best").is_met is None
    assert goal("batch 32").is_met is True
    step = goal("decoder step")
    assert step.measured is not None
    assert step.measured.median == pytest.approx(1.75)
    assert step.is_met is False
    assert goal("first translation").is_met is True
    assert goal("peak RSS").is_met is True
    assert goal("INT8 pack").is_met is False
    target = goal("a target token in a sentence of 400").measured
    assert target is not None
    assert target.median == pytest.approx(1.2)
    source = goal("a source token").measured
    assert source is not None
    assert source.median == pytest.approx(1.1)
    assert {one.is_met for one in goals(BenchResult(MACHINE, "", "", False), None)} == {None}


def test_the_report(result: BenchResult, cold: ColdResult) -> None:
    report = bench_report(result, cold)

    assert "A processor, 2 cores, flags avx2" in report
    assert "Interrupted" not in report
    assert "| peak RSS of serving single requests, in MB of 1,048,576 bytes | ≤ 150 MB | 142.1 MB | yes |" in report
    assert "| the INT8 pack, in MB of 1,048,576 bytes | ≤ 79 MB | 80.1 MB | **no** |" in report
    assert "| process start to first translation: times CTranslate2's | ≤ 0.65x | 0.50x [0.50–0.50] | yes |" in report
    assert "## 25 source tokens, 30 target tokens, 1 thread\n" in report
    assert "| ours INT8 | 100.0 [100.0–150.0] | 300 | 1.00x [1.00–1.00] |" in report
    assert "| CTranslate2 INT8, as it comes | 330.0 [315.0–465.0] | 91 | 3.00x [3.00–3.15] |" in report
    assert "| transformers FP32 | 900.0 | 33 | 9.00x |" in report
    assert "| CTranslate2 INT8, best, same rows | 12.0 [12.0–12.0] | 2500 | 1.20x [1.20–1.20] |" in report
    assert "inter_threads=2, intra_threads=1, max_batch_size=16" in report
    assert "| ours INT8 | 32.00 [32.00–32.00] | 1.00x [1.00–1.00] | 50% |" in report
    assert "38.4 MB" in report
    assert "the products of a step alone 2.50 [2.25–2.75] ms: 1.25x [1.12–1.38]" in report
    assert "- three-file loop INT8, 25 -> 30 tokens, batch 1, 1 thread: ran out of memory" in report
    assert "The others: ctranslate2 4.0." in report


def test_a_report_tells_of_a_system_that_took_more_threads_than_it_was_given(result: BenchResult) -> None:
    assert "more processors" not in bench_report(result, None)

    result.rows[0].measurements[1].samples = [Sample(0, 0.1, 0.19, 30)]

    assert "- CTranslate2 INT8, as it comes, 25 -> 30 tokens, batch 1, 1 thread: 1.90" in bench_report(result, None)


def test_the_report_of_cold_starts(cold: ColdResult) -> None:
    report = cold_report(cold)

    assert "| CTranslate2 INT8 + sentencepiece | 600 [600–600] | 2.00x [2.00–2.00] | 140 | 3 |" in report
    assert "## The parts of ours INT8's start" in report
    assert "| model | 200.0 [200.0–200.0] |" in report
    assert "- optimum INT8: no such file" in report


def test_an_interruption_keeps_what_was_measured(
    result: BenchResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_measure", interrupt)
    monkeypatch.setattr(bench, "PEERS_PYTHON", Path("/nowhere/python"))
    result.is_complete = False

    status = bench.run(result, quick_plan(), systems.SYSTEMS, Models(tmp_path, print), tmp_path)

    assert status == 130
    assert "Interrupted: what was measured until then" in (tmp_path / "bench.md").read_text("utf-8")
    assert len(json.loads((tmp_path / "bench.json").read_text("utf-8"))["rows"]) == 3
    assert "There is no chart" in capsys.readouterr().err


# What is said


def test_a_missing_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PEERS_PYTHON", ROOT / ".venv-missing" / "bin" / "python")

    assert python_for("ours") == Path(sys.executable)
    with pytest.raises(BenchError, match=r"\.venv-missing/bin/python is missing: `make bench`"):
        python_for("ctranslate2")


def test_the_command_ends_with_an_error_when_an_environment_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "PEERS_PYTHON", ROOT / ".venv-missing" / "bin" / "python")
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--out", str(tmp_path)])
    monkeypatch.setattr(Models, "prepare", lambda *_: None)

    assert bench.main() == 2
    assert ".venv-missing/bin/python is missing" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["benchmarks.bench", "benchmarks.cold"])
def test_help(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert "--quick" in done.stdout


@pytest.mark.parametrize(("target", "module"), [("bench", "benchmarks.bench"), ("bench-cold", "benchmarks.cold")])
@pytest.mark.parametrize(("variables", "is_quick"), [([], False), (["QUICK=yes"], True), (["QUICK=no"], False)])
def test_make(target: str, module: str, variables: list[str], is_quick: bool) -> None:
    done = subprocess.run(
        ["make", "--dry-run", target, *variables], cwd=ROOT, capture_output=True, text=True, check=True
    )

    (command,) = (line for line in done.stdout.splitlines() if f"-m {module}" in line)
    assert ("--quick" in command) == is_quick
