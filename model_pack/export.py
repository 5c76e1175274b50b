"""Exports a checkpoint to float32 ONNX by one of three roads, so that they can be held against each other."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from model_pack.errors import ModelPackError

Road = Literal["direct", "torch", "optimum"]
ROADS: tuple[Road, ...] = ("direct", "torch", "optimum")


def export(checkpoint: Path, out: Path, road: Road, opset: int, say: Callable[[str], None]) -> None:
    """Export the checkpoint folder to folder `out`: a pack (direct, torch), or optimum's own files (optimum).

    Args:
        opset: of the ONNX graphs; the direct road has a fixed one.

    Raises:
        ModelPackError: the road cannot be gone: a package is missing, or the checkpoint or the opset does not suit it.
    """
    # Each road imports what it needs when it is gone: no environment has all of it.
    if road == "direct":
        from model_pack.build import build_pack  # noqa: PLC0415

        build_pack(checkpoint, out, None, say)
    elif road == "torch":
        _require("torch", "transformers", environment="make .venv-export/stamp")
        from model_pack.build import write_pack  # noqa: PLC0415
        from model_pack.torch_export import OPSETS, write_torch_graphs  # noqa: PLC0415

        if opset not in OPSETS:
            raise ModelPackError(f"--opset {opset} is not one of {OPSETS[0]} to {OPSETS[-1]}.")
        write_graphs = partial(write_torch_graphs, opset=opset)
        described = {"precision": "fp32", "exported_by": f"torch.onnx, opset {opset}"}
        write_pack(checkpoint, out, write_graphs, described, say, keep_all_rows=True)
    else:
        _require("optimum", environment="make .venv-optimum/stamp")
        from model_pack.optimum_export import export_with_optimum  # noqa: PLC0415

        export_with_optimum(checkpoint, out, opset, say)


def _require(*packages: str, environment: str) -> None:
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise ModelPackError(
            f"this road needs {' and '.join(missing)}, which this Python does not have: "
            f"`{environment}` sets up an environment that has."
        )
