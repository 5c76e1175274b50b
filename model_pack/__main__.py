"""Command line: `python -m model_pack STEP`.

Each step imports what it needs when it runs: the steps live in different environments, and none has all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from model_pack.errors import ModelPackError

DEFAULT_MODEL = "Helsinki-NLP/opus-mt-en-zh"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m model_pack", description="Build model packs for marian-lambda.")
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    for add_step in (
        _add_fetch, _add_inspect, _add_baseline, _add_export, _add_build, _add_quantize, _add_verify, _add_evaluate,
        _add_report, _add_pack, _add_random,
    ):  # fmt: skip
        add_step(steps)
    arguments = parser.parse_args()
    try:
        return int(arguments.run(arguments) or 0)
    except ModelPackError as error:
        print(f"model_pack {arguments.step}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"model_pack {arguments.step}: interrupted; what was there before is as it was.", file=sys.stderr)
        return 130


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _add_fetch(steps: Any) -> None:
    step = _step(steps, "fetch", "download a checkpoint from a hub", _fetch)
    step.add_argument("model", nargs="?", default=DEFAULT_MODEL, help="model id on the hub (default: %(default)s)")
    step.add_argument("--revision", help="commit, tag or branch (default: the main branch, resolved to its commit)")
    step.add_argument("--local-dir", type=Path, help="folder for the files (default: build/checkpoints/NAME)")


def _fetch(arguments: argparse.Namespace) -> None:
    from model_pack.fetch import fetch

    name = arguments.model.rpartition("/")[2]
    fetch(arguments.model, arguments.revision, arguments.local_dir or Path("build", "checkpoints", name), _say)


def _add_inspect(steps: Any) -> None:
    step = _step(steps, "inspect", "tell every number that decoding depends on, and what is unusual", _inspect)
    _add_checkpoint(step)
    step.add_argument("--out", type=Path, help="JSON file to store it in")


def _inspect(arguments: argparse.Namespace) -> None:
    from model_pack.inspect import inspect_checkpoint

    inspect_checkpoint(arguments.checkpoint, arguments.out, print)


def _add_baseline(steps: Any) -> None:
    step = _step(steps, "baseline", "translate an evaluation set with transformers, greedy and with beams", _baseline)
    _add_checkpoint(step)
    _add_data(step)
    step.add_argument("--out", type=Path, required=True, help="JSON-lines file; one that was begun is gone on with")


def _baseline(arguments: argparse.Namespace) -> None:
    from model_pack.baseline import write_baseline

    segments = [segment for segments in _data(arguments).values() for segment in segments]
    write_baseline(arguments.checkpoint, segments, arguments.out, _say)


def _add_export(steps: Any) -> None:
    step = _step(steps, "export", "write float32 ONNX graphs: directly, with torch.onnx or with optimum", _export)
    _add_checkpoint(step)
    _add_out(step)
    step.add_argument("--via", choices=("direct", "torch", "optimum"), default="direct", help="default: %(default)s")
    step.add_argument("--opset", type=int, default=17, help="of torch's and optimum's graphs (default: %(default)s)")


def _export(arguments: argparse.Namespace) -> None:
    from model_pack.export import export

    export(arguments.checkpoint, arguments.out, arguments.via, arguments.opset, _say)


def _add_build(steps: Any) -> None:
    step = _step(steps, "build", "checkpoint folder -> model pack, by the direct road", _build)
    _add_checkpoint(step)
    _add_out(step)
    step.add_argument("--precision", choices=("fp32", "int8"), default="int8", help="default: %(default)s")


def _build(arguments: argparse.Namespace) -> None:
    from model_pack.build import build_pack
    from model_pack.quantization import Quantization

    quantization = Quantization() if arguments.precision == "int8" else None
    build_pack(arguments.checkpoint, arguments.out, quantization, _say)


def _add_quantize(steps: Any) -> None:
    step = _step(steps, "quantize", "checkpoint folder -> INT8 model pack, with every choice open", _quantize)
    _add_checkpoint(step)
    _add_out(step)
    step.add_argument("--weights", choices=("int8", "uint8"), default="int8", help="default: %(default)s")
    step.add_argument("--per-tensor", action="store_true", help="one scale a matrix, not one a column")
    step.add_argument("--reduce-range", action="store_true", help="7-bit weights")
    step.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="layers to leave float32, such as '*.fc2'"
    )
    activations = step.add_mutually_exclusive_group()
    activations.add_argument(
        "--activations",
        choices=("per-token", "two-part", "per-tensor"),
        default="per-token",
        help="scales are measured for each token (default), the same with 14 bits, or for a batch as a whole",
    )
    activations.add_argument(
        "--static", type=Path, metavar="FILE", help="fixed activation scales, measured on this text (a sentence a line)"
    )
    step.add_argument("--keep-all-rows", action="store_true", help="also output rows that target.spm cannot produce")


def _quantize(arguments: argparse.Namespace) -> None:
    from model_pack.build import build_pack
    from model_pack.calibrate import calibrate
    from model_pack.dataset import read_text_pair
    from model_pack.quantization import Quantization

    ranges = {}
    if arguments.static:
        texts = [segment.source for segment in read_text_pair(arguments.static, None)]
        ranges = calibrate(arguments.checkpoint, texts)
    quantization = Quantization(
        weights=arguments.weights,
        per_channel=not arguments.per_tensor,
        reduce_range=arguments.reduce_range,
        excluded=tuple(arguments.exclude),
        activations="static" if ranges else arguments.activations,
        activation_ranges=ranges,
    )
    build_pack(arguments.checkpoint, arguments.out, quantization, _say, keep_all_rows=arguments.keep_all_rows)


def _add_verify(steps: Any) -> None:
    step = _step(steps, "verify", "hold exports and packs beside transformers, tensor by tensor", _verify)
    _add_checkpoint(step)
    step.add_argument(
        "--pack", action="append", default=[], type=_named_path, metavar="NAME=DIR", help="a pack, by any name"
    )
    step.add_argument("--optimum", type=Path, metavar="DIR", help="what `export --via optimum` wrote")
    _add_data(step)
    step.add_argument("--out", type=Path, help="JSON file for the verdicts")


def _verify(arguments: argparse.Namespace) -> int:
    from model_pack.verify import verify_roads

    segments = [segment for segments in _data(arguments).values() for segment in segments]
    passed = verify_roads(arguments.checkpoint, dict(arguments.pack), arguments.optimum, segments, arguments.out, print)
    return 0 if passed else 1


def _add_evaluate(steps: Any) -> None:
    step = _step(steps, "evaluate", "BLEU, chrF and more, pack beside pack", _evaluate)
    step.add_argument("--pack", action="append", required=True, type=_named_path, metavar="NAME=DIR", help="repeatable")
    step.add_argument("--baseline", type=Path, help="what `baseline` wrote")
    _add_data(step)
    step.add_argument("--out", type=Path, required=True, help="JSON file for figures and sentences")


def _evaluate(arguments: argparse.Namespace) -> None:
    from model_pack.evaluate import evaluate_packs, markdown

    sets = _data(arguments)
    print(markdown(evaluate_packs(dict(arguments.pack), sets, arguments.baseline, arguments.out, _say)), end="")


def _add_report(steps: Any) -> None:
    step = _step(steps, "report", "one HTML file to judge a pack by", _report)
    step.add_argument("--evaluation", type=Path, required=True, help="what `evaluate` wrote")
    step.add_argument("--pack", action="append", required=True, type=_named_path, metavar="NAME=DIR", help="repeatable")
    step.add_argument("--inspection", type=Path, help="what `inspect` wrote")
    step.add_argument("--out", type=Path, required=True, help="HTML file")


def _report(arguments: argparse.Namespace) -> None:
    from model_pack.report import write_report

    write_report(arguments.evaluation, dict(arguments.pack), arguments.inspection, arguments.out)


def _add_pack(steps: Any) -> None:
    step = _step(steps, "pack", "the whole road, from a hub or a folder to a verified pack with its report", _pack)
    source = step.add_mutually_exclusive_group()
    source.add_argument("--model", default=DEFAULT_MODEL, help="model id on the hub (default: %(default)s)")
    source.add_argument("--checkpoint", type=Path, help="checkpoint folder, instead of a hub")
    step.add_argument("--revision", help="commit, tag or branch of --model")
    step.add_argument("--work", type=Path, help="folder for everything that is made (default: build/models/NAME)")
    step.add_argument("--precision", choices=("fp32", "int8"), default="int8", help="default: %(default)s")
    step.add_argument("--force", action="store_true", help="keep a pack that the quality gate refuses")
    _add_data(step)


def _pack(arguments: argparse.Namespace) -> None:
    from model_pack.pack import make_pack

    name = arguments.checkpoint.resolve().name if arguments.checkpoint else arguments.model.rpartition("/")[2]
    make_pack(
        arguments.checkpoint or arguments.model,
        arguments.revision,
        arguments.work or Path("build", "models", name),
        arguments.precision,
        _data(arguments),
        _say,
        force=arguments.force,
    )


def _add_random(steps: Any) -> None:
    step = _step(steps, "random", "a checkpoint of a model's size with random weights", _random)
    step.add_argument("--like", default="opus-mt-en-zh", help="a known name or a folder (default: %(default)s)")
    _add_out(step)


def _random(arguments: argparse.Namespace) -> None:
    from model_pack.random_checkpoint import write_random_checkpoint

    write_random_checkpoint(arguments.like, arguments.out, _say)


def _step(steps: Any, name: str, description: str, run: Callable[[argparse.Namespace], int | None]) -> Any:
    step = steps.add_parser(name, help=description, description=description[0].upper() + description[1:] + ".")
    step.set_defaults(run=run)
    return step


def _add_checkpoint(step: Any) -> None:
    step.add_argument("--checkpoint", type=Path, required=True, help="Hugging Face MarianMT checkpoint folder")


def _add_out(step: Any) -> None:
    step.add_argument("--out", type=Path, required=True, help="folder to write")


def _add_data(step: Any) -> None:
    step.add_argument(
        "--data", action="append", type=Path, metavar="FILE.tsv",
        help="sentences: columns en (or source), and optionally zh (or reference), id, category; repeatable "
        "(default: the evaluation set that is shipped)",
    )  # fmt: skip
    step.add_argument("--source", type=Path, metavar="FILE", help="sentences, a line each, instead of --data")
    step.add_argument("--reference", type=Path, metavar="FILE", help="their references, line by line")


def _data(arguments: argparse.Namespace) -> dict[str, Any]:
    """The sets of sentences that were named, or the shipped one."""
    from model_pack.dataset import EVALSET, read_text_pair, read_tsv

    if arguments.reference and not arguments.source:
        raise ModelPackError("--reference needs --source, the sentences that it translates.")
    if arguments.source and arguments.data:
        raise ModelPackError("give --data or --source, not both.")
    if arguments.source:
        return {arguments.source.stem: read_text_pair(arguments.source, arguments.reference)}
    return {path.stem if path != EVALSET else "evalset": read_tsv(path) for path in arguments.data or [EVALSET]}


def _named_path(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=DIR, such as int8=build/packs/starter-int8")
    return name, Path(path)


if __name__ == "__main__":
    sys.exit(main())
