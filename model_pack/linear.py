"""Linear layers as graph nodes, in the precision of the pack."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model_pack.graph import CONTRIB, Graph

Precision = Literal["fp32", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")

_INT8_MAX = 127


def quantize_columns(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 with one scale a column: matrix [K, N] -> int8 [K, N], scales [N]."""
    scales = np.maximum(np.abs(matrix).max(0), np.finfo(np.float32).tiny * _INT8_MAX) / _INT8_MAX
    return np.rint(matrix / scales).astype(np.int8), scales.astype(np.float32)


def linear(
    graph: Graph,
    x: str,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    name: str,
    precision: Precision,
    output: str | None = None,
) -> str:
    """x [..., K] -> x @ weight.T + bias [..., N]; weight [N, K] as torch stores it."""
    matrix = np.ascontiguousarray(weight.T)  # [K, N]
    if precision == "fp32":
        product = graph.op("MatMul", x, graph.constant(matrix, f"{name}.weight"))
        return graph.op("Add", product, graph.constant(bias, f"{name}.bias"), output=output)
    # Signed weights with a scale a column: of the kernels measured, the fastest and the least noisy.
    quantized, scales = quantize_columns(matrix)
    return graph.op(
        "DynamicQuantizeMatMul",
        x,
        graph.constant(quantized, f"{name}.weight"),
        graph.constant(scales, f"{name}.scales"),
        graph.constant(np.zeros(scales.shape, np.int8), f"{name}.zero_points"),
        graph.constant(bias, f"{name}.bias"),
        domain=CONTRIB,
        output=output,
    )
