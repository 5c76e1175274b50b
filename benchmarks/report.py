"""bench.md and cold.md: the results as Markdown tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from benchmarks import systems
from benchmarks.goals import Goal, goals, source_growth, source_linearity, target_linearity
from benchmarks.machine import Machine
from benchmarks.plan import ALONE, BATCHES, OPUS, SHAPES, STARTER, THREADS, TOGETHER, Row
from benchmarks.results import BenchResult, ColdMeasurement, ColdResult, RowResult
from benchmarks.samples import spread
from benchmarks.tables import NONE, spread_text, table

_MORE_THREADS = 1.15  # times the threads that a system was given: more than a clock's error


def bench_report(result: BenchResult, cold: ColdResult | None) -> str:
    """The whole of bench.md; `cold` is what bench-cold has left, if it was run."""
    sections = [
        _heading("Benchmark", result),
        _how(),
        _goal_table(goals(result, cold)),
        *(_shape_section(result, shape, threads) for shape in SHAPES for threads in THREADS),
        *(_text_section(result, threads) for threads in THREADS),
        _configurations(result),
        _roofline(result),
        _lengths(result),
        _memory_and_size(result),
        _failures(result.all_failures()),
        _oversized(result),
        _versions(result.machine),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def cold_report(result: ColdResult) -> str:
    """The whole of cold.md."""
    rows = []
    for found in result.measurements:
        if not found.starts:
            continue
        memory = spread([start.peak_rss_mb for start in found.starts])
        rows.append(
            [
                found.system,
                spread_text(spread(list(found.seconds.values())).times(1000), 0),
                spread_text(result.ratio(found.system, systems.OURS), 2, "x"),
                f"{memory.median:.0f}",
                str(len(found.starts)),
            ]
        )
    sections = [
        _heading("Cold starts", result),
        f"From the start of a process to the end of its first translation: one English sentence, 30 target tokens, "
        f"{result.threads} threads, a model of opus-mt-en-zh's size with random weights, files in the page cache. "
        "The systems take turns, and ratios are taken turn by turn. Medians, with quartiles in brackets.",
        table(["system", "ms", "times ours INT8", "peak RSS, MB", "starts"], rows),
        *(_parts(found) for found in result.measurements if found.starts),
        _failures((found.system, found.failure) for found in result.measurements if found.failure),
        _versions(result.machine),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _heading(title: str, result: BenchResult | ColdResult) -> str:
    machine = result.machine
    kind = "quick form: few rounds, for a first look" if result.is_quick else "full form"
    unfinished = "" if result.is_complete else "\n\n**Interrupted: what was measured until then.**"
    flags = ", ".join(machine.flags) or "none of those looked for"
    return (
        f"# {title}\n\n"
        f"`{result.command}` ({kind}) on {result.date}: {machine.processor}, {machine.cores} cores, flags {flags}; "
        f"{machine.memory_gb:.0f} GB, Linux {machine.kernel}, Python {machine.python}.{unfinished}"
    )


def _how() -> str:
    return (
        "The systems take turns: every round runs each of them once on the same work, so that what slows the machine "
        'slows them all. Milliseconds a sentence are medians, with quartiles in brackets. "Times ours" is how many '
        f"times as long a system takes as {systems.OURS}, taken round by round. Slow systems take part in some of the "
        "rounds. Token ids are random; every system decodes exactly the target tokens that a table names."
    )


def _goal_table(found: Sequence[Goal]) -> str:
    words = {True: "yes", False: "**no**", None: NONE}
    rows = [
        [
            goal.what,
            f"{'≥' if goal.at_least else '≤'} {goal.limit:g} {goal.unit}".replace(" x", "x"),
            _value(goal),
            words[goal.is_met],
        ]
        for goal in found
    ]
    return "## Goals\n\n" + table(["goal", "wanted", "measured", "met"], rows)


def _value(goal: Goal) -> str:
    if goal.measured is None:
        return "not measured"
    return spread_text(goal.measured, 2, "x") if goal.unit == "x" else f"{goal.measured.median:.1f} {goal.unit}"


def _shape_section(result: BenchResult, shape: tuple[int, int], threads: int) -> str:
    found = {batch: result.row(Row(OPUS, threads, batch, *shape)) for batch in BATCHES}
    rows = {batch: row for batch, row in found.items() if row and any(row.of(s.name) for s in systems.SYSTEMS)}
    if not rows:
        return ""
    lines = []
    for system in systems.SYSTEMS:
        if any(row.of(system.name) for row in rows.values()):
            cells = [cell for row in rows.values() for cell in _cells(row, system.name, shape[1])]
            lines.append([system.name, *cells])
    heads = [head for batch in rows for head in (f"batch {batch}: ms a sentence", "tokens/s", "times ours")]
    title = f"## {shape[0]} source tokens, {shape[1]} target tokens, {_threads(threads)}"
    return f"{title}\n\n" + table(["system", *heads], lines)


def _cells(row: RowResult, system: str, target_tokens: int) -> list[str]:
    milliseconds = row.milliseconds(system)
    rate = f"{target_tokens * 1000 / milliseconds.median:.0f}" if milliseconds else NONE
    return [spread_text(milliseconds, 1), rate, spread_text(row.ratio(system, systems.OURS), 2, "x")]


def _text_section(result: BenchResult, threads: int) -> str:
    found = {way: next(_text_rows(result, threads, way), None) for way in (ALONE, TOGETHER)}
    rows = {way: row for way, row in found.items() if row}
    if not rows:
        return ""
    lines = []
    for system in systems.SYSTEMS:
        if any(row.of(system.name) for row in rows.values()):
            cells = []
            for row in rows.values():
                agreement = _agreement(row, system.name)
                cells += [
                    spread_text(row.milliseconds(system.name), 2),
                    spread_text(row.ratio(system.name, systems.OURS), 2, "x"),
                    NONE if agreement is None else f"{agreement:.0%}",
                ]
            lines.append([system.name, *cells])
    heads = [head for way in rows for head in (f"{way}: ms a sentence", "times ours", f"as {systems.OURS_FP32}")]
    batch = next(iter(rows.values())).row.batch
    title = f"## {batch} real sentences with the starter model, text to text, {_threads(threads)}"
    explanation = (
        f'"As {systems.OURS_FP32}" is the share of sentences that come out as from that pack, which decodes as '
        "transformers does. On x86 without VNNI the usual INT8 kernels of ONNX Runtime saturate: the three-file loop "
        "and optimum take them as they come, weights of ours cannot make them."
    )
    return f"{title}\n\n{explanation}\n\n" + table(["system", *heads], lines)


def _text_rows(result: BenchResult, threads: int, way: str) -> Iterator[RowResult]:
    return (
        row
        for row in result.rows
        if (row.row.model, row.row.threads, row.row.text) == (STARTER, threads, way) and row.of(systems.OURS)
    )


def _agreement(row: RowResult, system: str) -> float | None:
    """The share of texts that came out as from our FP32 pack, which gives what transformers gives."""
    found, reference = row.of(system), row.of(systems.OURS_FP32)
    if not found or not reference or not found.texts:
        return None
    return statistics.mean(a == b for a, b in zip(found.texts, reference.texts, strict=True))


def _configurations(result: BenchResult) -> str:
    rows = [
        [str(row.row), found.system, found.configuration]
        for row in result.rows
        for found in row.measurements
        if found.configuration
    ]
    if not rows:
        return ""
    return "## What was the fastest for CTranslate2\n\n" + table(["row", "system", "configuration"], rows)


def _roofline(result: BenchResult) -> str:
    roofline = result.roofline
    if not roofline or not roofline.read_seconds:
        return ""
    read, step = spread(roofline.read_seconds), spread(roofline.step_seconds)
    products = spread(roofline.product_seconds)
    return (
        "## The decoder step beside the roofline, 1 thread\n\n"
        f"A step must read {roofline.bytes / 1e6:.1f} MB of weights. Reading so many bytes takes "
        f"{spread_text(read.times(1000), 2)} ms ({roofline.bytes / 1e9 / read.median:.1f} GB/s, the fastest of several "
        f"ways in numpy), the decoder's graph {spread_text(step.times(1000), 2)} ms: "
        f"{spread_text(roofline.step_ratio(), 2, 'x')}; the products of a step alone "
        f"{spread_text(products.times(1000), 2)} ms: {spread_text(roofline.product_ratio(), 2, 'x')}."
    )


def _lengths(result: BenchResult) -> str:
    rows = []
    for length in result.lengths:
        if length.seconds:
            milliseconds = spread(length.seconds).times(1000)
            tokens = length.source_tokens + length.target_tokens
            rows.append(
                [
                    str(length.source_tokens),
                    str(length.target_tokens),
                    spread_text(milliseconds, 1),
                    f"{milliseconds.median / length.target_tokens:.2f}",
                    f"{milliseconds.median / tokens:.2f}",
                ]
            )
    if not rows:
        return ""
    heads = ["source tokens", "target tokens", "ms", "ms a target token", "ms a token of both"]
    found = [
        f"A target token takes {spread_text(target, 2, 'x')} as long in a sentence of 400 as in one of 40."
        if (target := target_linearity(result))
        else "",
        f"Until the first target token, a source token takes {spread_text(source, 2, 'x')} as long."
        if (source := source_linearity(result))
        else "",
        f"Further ones add {spread_text(growth, 2, 'x')} as much between 40 and 400 as between 4 and 40."
        if (growth := source_growth(result))
        else "",
    ]
    text = " ".join(sentence for sentence in found if sentence)
    return f"## Long sentences: {systems.OURS}, one sentence, 1 thread\n\n" + table(heads, rows) + f"\n\n{text}"


def _memory_and_size(result: BenchResult) -> str:
    sections = []
    single = result.single_request_rss_mb
    lines = []
    for system in systems.SYSTEMS:
        peaks = {
            row.row.batch: found.peak_rss_mb
            for row in result.rows
            if row.row.model == OPUS
            and row.row.shape == SHAPES[0]
            and row.row.threads == max(THREADS)
            and (found := row.of(system.name))
        }
        if peaks:
            lines.append([system.name, *(f"{peaks[batch]:.0f}" if batch in peaks else NONE for batch in BATCHES)])
    if lines:
        heads = ["system", *(f"after batch {batch}" for batch in BATCHES)]
        sections.append(
            "## Memory\n\nPeak RSS in MB of the process, with 2 threads: loading and the rows until then."
            "\n\n" + table(heads, lines)
        )
    if single is not None:
        sections.append(f"{systems.OURS} in a fresh process that serves single requests: {single:.0f} MB.")
    if result.sizes_mb:
        rows = [[name, f"{size:.1f}"] for name, size in sorted(result.sizes_mb.items())]
        sections.append("## Size on disk\n\n" + table(["folder", "MB"], rows))
    return "\n\n".join(sections)


def _oversized(result: BenchResult) -> str:
    """Where a system has kept more processors busy than it was given threads."""
    lines = []
    for row in result.rows:
        for found in row.measurements:
            if found.samples:
                busy = statistics.median(sample.cpu_seconds / sample.seconds for sample in found.samples)
                if busy > row.row.threads * _MORE_THREADS:
                    lines.append(f"- {found.system}, {row.row}: {busy:.2f}")
    return "## Systems that took more processors than they were given\n\n" + "\n".join(lines) if lines else ""


def _parts(found: ColdMeasurement) -> str:
    names = list(dict.fromkeys(name for start in found.starts for name in start.parts))
    rows = [
        [name, spread_text(spread([start.parts[name] for start in found.starts if name in start.parts]), 1)]
        for name in names
    ]
    return f"## The parts of {found.system}'s start\n\n" + table(["part", "ms"], rows)


def _failures(failures: Iterable[tuple[str, str]]) -> str:
    lines = [f"- {what}: {' '.join(why.split())[:300]}" for what, why in failures]
    return "## Not measured\n\n" + "\n".join(lines) if lines else ""


def _versions(machine: Machine) -> str:
    ours, peers = (
        ", ".join(f"{name} {number}" for name, number in versions.items()) for versions in (machine.ours, machine.peers)
    )
    return f"## Versions\n\nOurs: {ours}.\n\nThe others: {peers}."


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"
