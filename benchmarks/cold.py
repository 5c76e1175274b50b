"""Measure cold starts beside other systems: `make bench-cold`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tqdm import tqdm

from benchmarks import systems
from benchmarks.bench import COLD_JSON, OUT, command, say
from benchmarks.errors import BenchError
from benchmarks.machine import describe_machine
from benchmarks.models import Models
from benchmarks.plan import OPUS
from benchmarks.processes import ROOT, environment, python_for
from benchmarks.report import cold_report
from benchmarks.results import ColdMeasurement, ColdResult, ColdStart, write_json
from model_pack.errors import ModelPackError
from model_pack.files import write_atomically

TARGET_TOKENS = 30
THREADS = 2

_ROUNDS, _QUICK_ROUNDS = 20, 3
_SLOW_EVERY = 5


@dataclass(frozen=True)
class ColdSystem:
    """A system whose start is measured; its fields are those of `systems.System`."""

    name: str
    backend: str
    model: str
    is_slow: bool = False


COLD_SYSTEMS = (
    ColdSystem(systems.OURS, "ours", f"{OPUS}-ours-int8"),
    ColdSystem(systems.OURS_FP32, "ours", f"{OPUS}-ours-fp32"),
    ColdSystem(systems.CTRANSLATE2_COLD, "ctranslate2", f"{OPUS}-ctranslate2-int8"),
    ColdSystem(systems.OPTIMUM, "optimum", f"{OPUS}-optimum-int8", is_slow=True),
    ColdSystem(systems.TRANSFORMERS, "transformers", f"{OPUS}-checkpoint", is_slow=True),
)


def main() -> int:
    arguments = _parse_arguments()
    try:
        models = Models(arguments.out / "models", say)
        models.prepare([system.model for system in COLD_SYSTEMS])
        date = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        result = ColdResult(describe_machine(), command(), date, is_quick=arguments.quick, threads=THREADS)
        return run(result, models, _QUICK_ROUNDS if arguments.quick else _ROUNDS, arguments.out)
    except (BenchError, ModelPackError) as error:
        print(f"bench-cold: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench-cold: interrupted before anything was measured.", file=sys.stderr)
        return 130


def run(result: ColdResult, models: Models, rounds: int, out: Path) -> int:
    """Measure, and write what was measured also when it is interrupted. Returns: the command's exit status."""
    status = 0
    try:
        _measure(result, models, rounds)
        result.is_complete = True
    except KeyboardInterrupt:
        say("Interrupted; writing what was measured")
        status = 130
    write_json(result, out / COLD_JSON)
    write_atomically(out / "cold.md", cold_report(result))
    say(f"Wrote {out / COLD_JSON}, {out / 'cold.md'}")
    for found in result.measurements:
        if found.failure:
            print(f"bench-cold: not measured: {found.system}: {found.failure}", file=sys.stderr)
            status = status or 1
    return status


def start(system: ColdSystem, models: Models, number: int) -> ColdStart:
    """Start a process, let it translate, and read what it measured.

    Raises:
        BenchError: it failed, or did not decode the tokens that all systems decode.
    """
    model, checkpoint = models.path(system.model), models.path(f"{OPUS}-checkpoint")
    arguments = [system.backend, str(model), str(checkpoint), str(THREADS), str(TARGET_TOKENS)]
    program = [str(python_for(system.backend)), "-m", "benchmarks.cold_program", *arguments]
    done = subprocess.run(
        [*program, str(time.monotonic_ns())],
        cwd=ROOT,
        env=environment(THREADS),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BenchError(done.stderr.strip()[-500:])
    answer = json.loads(done.stdout.splitlines()[-1])
    if answer["target_tokens"] != TARGET_TOKENS:
        raise BenchError(f"decoded {answer['target_tokens']} tokens, not {TARGET_TOKENS}")
    return ColdStart(number, sum(answer["parts"].values()) / 1000, answer["peak_rss_mb"], answer["parts"])


def _measure(result: ColdResult, models: Models, rounds: int) -> None:
    """One round more than asked for: the first fills the page cache and is dropped.

    The quick form leaves slow systems out of that one.
    """
    found = {system.name: ColdMeasurement(system.name) for system in COLD_SYSTEMS}
    result.measurements = list(found.values())
    turns = [
        (number, system)
        for number in range(-1, rounds)
        for system in COLD_SYSTEMS
        if not system.is_slow or (number % _SLOW_EVERY == 0 if number >= 0 else not result.is_quick)
    ]
    with tqdm(turns, unit="start", desc="bench-cold", dynamic_ncols=True) as bar:
        for number, system in bar:
            bar.set_postfix_str(system.name)
            measurement = found[system.name]
            if measurement.failure:
                continue
            try:
                measured = start(system, models, number)
            except BenchError as error:
                measurement.failure = str(error)
                continue
            if number >= 0:
                measurement.starts.append(measured)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cold",
        description="Measure the time and the memory from the start of a process to the end of its first translation, "
        "in turns with other systems; write cold.json and cold.md. The first run prepares the models.",
    )
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_ROUNDS} rounds, not {_ROUNDS}")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for results and models (default: build/bench)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
