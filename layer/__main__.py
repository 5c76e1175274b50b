"""Command line: `python -m layer STEP`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from layer import sizes, wheels
from layer.archive import write_zip
from layer.bytecode import find_python
from layer.errors import LayerError
from layer.model import build_model
from layer.runtime import build_runtime


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m layer", description="Build the Lambda layers of marian-lambda.")
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    for add_step in (_add_runtime, _add_model, _add_sizes, _add_lock):
        add_step(steps)
    arguments = parser.parse_args()
    try:
        return int(arguments.run(arguments) or 0)
    except LayerError as error:
        print(error, file=sys.stderr)
        return 2


def _add_runtime(steps: Any) -> None:
    step = _step(steps, "runtime", "numpy, onnxruntime and sentencex, trimmed", _runtime)
    step.add_argument(
        "--architecture", choices=sorted(wheels.MACHINES, reverse=True), default="x86_64", help="default: %(default)s"
    )
    step.add_argument(
        "--no-bytecode", action="store_true", help="ship no compiled modules: needs no Python 3.13, starts slower"
    )
    _add_out(step)


def _runtime(arguments: argparse.Namespace) -> None:
    python = None if arguments.no_bytecode else find_python()
    build_runtime(arguments.architecture, arguments.out, python, _say)
    _zip(arguments)


def _add_model(steps: Any) -> None:
    step = _step(steps, "model", "a model pack", _model)
    step.add_argument("--pack", type=Path, required=True, metavar="DIR", help="the model pack")
    _add_out(step)


def _model(arguments: argparse.Namespace) -> None:
    build_model(arguments.pack, arguments.out)
    _zip(arguments)


def _add_sizes(steps: Any) -> None:
    step = _step(steps, "sizes", "what the function and its layers weigh; exits with 1 over Lambda's limit", _sizes)
    step.add_argument(
        "--runtime", action="append", required=True, type=_runtime_layer, metavar="ARCHITECTURE=DIR",
        help="a runtime layer; repeatable",
    )  # fmt: skip
    step.add_argument("--pack", type=Path, required=True, metavar="DIR", help="the model pack")


def _sizes(arguments: argparse.Namespace) -> int:
    measured = [sizes.measure(architecture, path, arguments.pack) for architecture, path in arguments.runtime]
    print(sizes.table(measured))
    return 1 if any(each.total > sizes.LIMIT for each in measured) else 0


def _add_lock(steps: Any) -> None:
    _step(steps, "lock", "pin the wheels that function/requirements.txt names, by hash", lambda _: wheels.lock())


def _step(steps: Any, name: str, description: str, run: Callable[[argparse.Namespace], int | None]) -> Any:
    step = steps.add_parser(name, help=description, description=description[0].upper() + description[1:] + ".")
    step.set_defaults(run=run)
    return step


def _add_out(step: Any) -> None:
    step.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the layer")
    step.add_argument("--zip", type=Path, metavar="FILE", help="also a zip of it, to upload")


def _zip(arguments: argparse.Namespace) -> None:
    if arguments.zip:
        digest = write_zip(arguments.out, arguments.zip)
        _say(f"Wrote {arguments.zip}: {arguments.zip.stat().st_size / 1e6:.1f} MB, sha256 {digest}")


def _runtime_layer(text: str) -> tuple[str, Path]:
    architecture, equals, path = text.partition("=")
    if not (architecture in wheels.MACHINES and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not ARCHITECTURE=DIR, such as arm64=build/layers/runtime-arm64")
    return architecture, Path(path)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
