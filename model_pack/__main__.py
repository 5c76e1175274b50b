"""Command line: `python -m model_pack STEP`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from model_pack.build import build_pack
from model_pack.errors import ModelPackError
from model_pack.quantization import Quantization


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m model_pack", description="Build model packs for marian-lambda.")
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    build = steps.add_parser("build", help="checkpoint folder -> model pack", description=build_pack.__doc__)
    build.add_argument("--checkpoint", type=Path, required=True, help="Hugging Face MarianMT checkpoint folder")
    build.add_argument("--out", type=Path, required=True, help="folder that the pack becomes")
    build.add_argument(
        "--precision", choices=("fp32", "int8"), default="int8", help="of the weights (default: %(default)s)"
    )
    arguments = parser.parse_args()
    try:
        quantization = Quantization() if arguments.precision == "int8" else None
        build_pack(arguments.checkpoint, arguments.out, quantization, _say)
    except ModelPackError as error:
        print(f"model_pack {arguments.step}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"model_pack {arguments.step}: interrupted; {arguments.out} is as it was.", file=sys.stderr)
        return 130
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
