"""Measure the starter packs and rewrite the figures in README.md: `make figures`."""

from __future__ import annotations

import csv
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import sacrebleu
from tqdm import tqdm

from benchmarks.lengths import at_most
from benchmarks.work import MOST_TOKENS
from function.engine.model import Model
from function.engine.pack import ModelPack
from function.service.settings import vcpu_count

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PACKS = {name: ROOT / "build" / "packs" / f"starter-{name}" for name in ("fp32", "int8")}
TEST_SETS = {"test_tatoeba": "Tatoeba, everyday", "test_docs": "docs, technical"}
BEGIN, END = "<!-- figures: written by `make figures` -->\n", "<!-- end of figures -->"

_ROUNDS = 9
_COLD_STARTS = 9


def main() -> None:
    models = {name: Model(ModelPack.open(path), vcpu_count()) for name, path in PACKS.items()}
    text = "\n".join([_setting(), "", *_quality(models), "", *_speed(models), "", *_cold_start(), ""])
    before, _, rest = README.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"{README} has no place for the figures: {BEGIN!r} ... {END!r}")
    README.write_text(f"{before}{BEGIN}{text}{END}{after}", "utf-8")
    print(text)


def _setting() -> str:
    names = ("onnxruntime", "numpy", "sacrebleu")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return (
        f"Measured with `make figures` on {datetime.now(UTC):%Y-%m-%d}: {_processor()}, {vcpu_count()} threads, "
        f"Python {platform.python_version()}, {versions}."
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _quality(models: dict[str, Model]) -> list[str]:
    rows = [
        "| held-out set | pairs | FP32 BLEU | INT8 BLEU | FP32 chrF | INT8 chrF | identical sentences |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, title in tqdm(TEST_SETS.items(), unit="test set", desc="quality"):
        sources, references = _test_set(name)
        outputs = {kind: _texts(model, sources) for kind, model in models.items()}
        bleu = {
            kind: sacrebleu.corpus_bleu(texts, [references], tokenize="zh").score for kind, texts in outputs.items()
        }
        chrf = {kind: sacrebleu.corpus_chrf(texts, [references]).score for kind, texts in outputs.items()}
        identical = statistics.mean(a == b for a, b in zip(outputs["fp32"], outputs["int8"], strict=True))
        rows.append(
            f"| {title} | {len(sources)} | {bleu['fp32']:.2f} | {bleu['int8']:.2f} "
            f"| {chrf['fp32']:.2f} | {chrf['int8']:.2f} | {identical:.1%} |"
        )
    return rows


def _speed(models: dict[str, Model]) -> list[str]:
    """Both packs take turns on the same sentences, so that their ratio holds on a busy machine.

    One that goes round in circles in one pack and not in the other is stopped.
    """
    models = {name: Model(at_most(model.pack, MOST_TOKENS), vcpu_count()) for name, model in models.items()}
    sources = _test_set("test_tatoeba")[0][:64]
    milliseconds: dict[tuple[str, str], list[float]] = {}
    for _ in tqdm(range(_ROUNDS), unit="round", desc="speed"):
        for kind, model in models.items():
            started = time.perf_counter()
            for source in sources:
                model.decode([source])
            alone = time.perf_counter()
            model.decode(sources)
            together = time.perf_counter()
            milliseconds.setdefault((kind, "alone"), []).append((alone - started) / len(sources) * 1000)
            milliseconds.setdefault((kind, "together"), []).append((together - alone) / len(sources) * 1000)
    rows = ["| pack | size | one sentence | 64 sentences together |", "| --- | --- | --- | --- |"]
    for kind, path in PACKS.items():
        size = sum(file.stat().st_size for file in path.iterdir()) / 1e6
        alone, together = (statistics.median(milliseconds[kind, way]) for way in ("alone", "together"))
        rows.append(f"| {kind.upper()} | {size:.1f} MB | {alone:.1f} ms | {together:.1f} ms a sentence |")
    ratios = {
        way: statistics.median(
            slow / fast for slow, fast in zip(milliseconds["fp32", way], milliseconds["int8", way], strict=True)
        )
        for way in ("alone", "together")
    }
    return [
        *rows,
        "",
        f"INT8 is {ratios['alone']:.2f}x (alone) and {ratios['together']:.2f}x (together) as fast as FP32.",
    ]


def _cold_start() -> list[str]:
    program = (
        "import json, sys\n"
        "from function.http_handler import handler\n"
        "assert handler(json.loads(sys.argv[1]), None)['statusCode'] == 200\n"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print(status['VmHWM'].split()[0])\n"
    )
    event = (ROOT / "events" / "rest-api-translate.json").read_text("utf-8")
    environment = {**os.environ, "MARIAN_PACK": str(PACKS["int8"])}
    command = [sys.executable, "-c", program, event]
    seconds, peaks = [], []
    for _ in tqdm(range(_COLD_STARTS), unit="start", desc="cold start"):
        started = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        seconds.append(time.perf_counter() - started)
        peaks.append(int(done.stdout) / 1024)
    return [
        f"From process start to the end of the first translation through the HTTP handler, INT8: "
        f"{statistics.median(seconds) * 1000:.0f} ms (median of {_COLD_STARTS}, files in the page cache), "
        f"{statistics.median(peaks):.0f} MB of memory at the most."
    ]


def _test_set(name: str) -> tuple[list[str], list[str]]:
    path = ROOT / "model_pack" / "starter" / "eval" / f"{name}.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["en"] for row in rows], [row["zh"] for row in rows]


def _texts(model: Model, sources: list[str]) -> list[str]:
    return [draft.text for draft in model.decode(sources)]


if __name__ == "__main__":
    main()
