"""Measure speed, memory and size beside other systems: `make bench`."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tqdm import tqdm

from benchmarks.errors import BenchError
from benchmarks.machine import describe_machine
from benchmarks.measure import measure_group, measure_lengths, measure_roofline, measure_single_requests
from benchmarks.models import Models
from benchmarks.plan import OPUS, Plan, full_plan, quick_plan
from benchmarks.processes import PEERS_PYTHON, ROOT, WorkerError
from benchmarks.records import from_json
from benchmarks.report import bench_report
from benchmarks.results import BenchResult, ColdResult, write_json
from benchmarks.systems import SYSTEMS, System
from model_pack.errors import ModelPackError
from model_pack.files import write_atomically

OUT = ROOT / "build" / "bench"
COLD_JSON = "cold.json"


def main() -> int:
    arguments = _parse_arguments()
    systems = [system for system in SYSTEMS if not arguments.only or system.name in arguments.only]
    plan = quick_plan() if arguments.quick else full_plan()
    try:
        models = Models(arguments.out / "models", say)
        models.prepare(_names(systems, plan))
        if arguments.prepare:
            return 0
        result = BenchResult(
            describe_machine(), command(), f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", is_quick=arguments.quick
        )
        result.sizes_mb = {name: models.megabytes(name) for name in _names(systems, plan)}
        return run(result, plan, systems, models, arguments.out)
    except (BenchError, ModelPackError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted before anything was measured.", file=sys.stderr)
        return 130


def run(result: BenchResult, plan: Plan, systems: Sequence[System], models: Models, out: Path) -> int:
    """Measure, and write what was measured also when it is interrupted. Returns: the command's exit status."""
    status = 0
    try:
        _measure(result, plan, systems, models)
        result.is_complete = True
    except KeyboardInterrupt:
        say("Interrupted; writing what was measured")
        status = 130
    write(result, out)
    for what, why in result.all_failures():
        print(f"bench: not measured: {what}: {why}", file=sys.stderr)
        status = status or 1
    return status


def write(result: BenchResult, out: Path) -> None:
    """Write bench.json, bench.md and bench.svg into folder `out`."""
    write_json(result, out / "bench.json")
    cold = out / COLD_JSON
    report = bench_report(
        result, from_json(ColdResult, json.loads(cold.read_text("utf-8"))) if cold.is_file() else None
    )
    write_atomically(out / "bench.md", report)
    written = [out / "bench.json", out / "bench.md"]
    command = [str(PEERS_PYTHON), "-m", "benchmarks.chart", str(out / "bench.json"), str(out / "bench.svg")]
    try:
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        written.append(out / "bench.svg")
    except subprocess.CalledProcessError as error:
        say(f"There is no chart: {error.stderr.strip().rpartition(chr(10))[2]}")
    except OSError as error:
        say(f"There is no chart: {error}")
    say(f"Wrote {', '.join(str(path) for path in written)}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def command() -> str:
    """The command that is running, for the record."""
    spec = sys.modules["__main__"].__spec__
    return shlex.join(["python", "-m", spec.name if spec else sys.argv[0], *sys.argv[1:]])


def _measure(result: BenchResult, plan: Plan, systems: Sequence[System], models: Models) -> None:
    others: dict[str, Callable[[Plan, Models, BenchResult], None]] = {
        "the decoder step beside the roofline": measure_roofline,
        "long sentences": measure_lengths,
        "memory of single requests": measure_single_requests,
    }
    rows = sum(map(len, plan.groups))
    with tqdm(total=rows + len(others), unit="row", desc="bench", dynamic_ncols=True) as bar:
        for what, measure in others.items():
            bar.set_postfix_str(what)
            try:
                measure(plan, models, result)
            except WorkerError as error:
                result.failures[what] = str(error)
            bar.update()
        for group in plan.groups:
            for _ in measure_group(group, systems, plan, models, result, bar.set_postfix_str):
                bar.update()


def _names(systems: Sequence[System], plan: Plan) -> list[str]:
    """The folders of all models that the plan's rows need."""
    rows = [planned.row for group in plan.groups for planned in group]
    names = [f"{OPUS}-ours-int8"]  # what measures more than rows needs it
    for row in rows:
        for system in systems:
            if system.takes_part(row):
                names += [f"{row.model}-{system.model}", f"{row.model}-{system.checkpoint}"]
    return list(dict.fromkeys(names))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench",
        description="Measure this project's engine beside transformers, optimum, a plain ONNX Runtime loop and "
        "CTranslate2, in turns; write bench.json, bench.md and bench.svg. The first run prepares the models.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds: about two minutes")
    names = [system.name for system in SYSTEMS]
    parser.add_argument(
        "--only", action="append", metavar="SYSTEM", choices=names, help=f"repeatable: {'; '.join(names)}"
    )
    parser.add_argument("--prepare", action="store_true", help="prepare the models and stop")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for results and models (default: build/bench)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
