"""Linear layers as graph nodes, quantised or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from model_pack.graph import CONTRIB, Graph
from model_pack.quantization import Quantization, QuantizedMatrix, quantize_matrix

_ZERO_POINTS = "zero_points_of_tokens"


def write_zero_points(graph: Graph, ids: str, quantization: Quantization | None) -> None:
    """ids [B, T] -> the zero points that `linear` needs in a graph whose tokens have scales of their own [B, T, 1]."""
    if quantization is not None and quantization.activations == "per-token":
        shape = graph.op("Shape", graph.op("Unsqueeze", ids, graph.integers(-1)))
        value = numpy_helper.from_array(np.array([128], np.uint8))
        graph.op("ConstantOfShape", shape, value=value, output=_ZERO_POINTS)


def linear(
    graph: Graph,
    x: str,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    name: str,
    quantization: Quantization | None,
    *,
    lowest: float | None = None,
    output: str | None = None,
) -> str:
    """x [B, T, K] -> x @ weight.T + bias [B, T, N]; weight [N, K] as torch stores it.

    Args:
        lowest: a value that x is never below, where one is known: no integers are spent on what lies beyond.
    """
    matrix = np.ascontiguousarray(weight.T)  # [K, N]
    if quantization is None or not quantization.covers(name):
        product = graph.op("MatMul", x, graph.constant(matrix, f"{name}.weight"))
        return graph.op("Add", product, graph.constant(bias, f"{name}.bias"), output=output)

    quantized = quantize_matrix(matrix, quantization)
    return quantized_linear(graph, x, quantized, bias, name, quantization, lowest=lowest, output=output)


def quantized_linear(
    graph: Graph,
    x: str,
    quantized: QuantizedMatrix,
    bias: NDArray[np.float32],
    name: str,
    quantization: Quantization,
    *,
    part_of: str | None = None,
    lowest: float | None = None,
    output: str | None = None,
) -> str:
    """`linear` of a matrix that is quantised already.

    Args:
        part_of: the layer, where the matrix has only some of its columns; then it has a name of its own.
    """
    layer = part_of or name
    if quantization.activations == "per-tensor":
        inputs = [x, *_matrix(graph, name, quantized), graph.constant(bias, f"{name}.bias")]
        return graph.op("DynamicQuantizeMatMul", *inputs, domain=CONTRIB, output=output)
    if quantization.activations == "static":
        scale, zero = quantization.activation_ranges[layer].scale_and_zero_point()
        step = graph.constant(np.array(scale), f"{layer}.input_scale")
        zero_point = graph.constant(np.array(zero), f"{layer}.input_zero_point")
        y = _product(graph, graph.op("QuantizeLinear", x, step, zero_point), zero_point, name, quantized)
        y = graph.op("Mul", y, step)
        return graph.op("Add", y, graph.constant(bias, f"{name}.bias"), output=output)

    bounded = lowest is not None and quantization.activations == "per-token"
    if lowest is not None and bounded:  # quantise x - lowest, never negative, and take off again what that adds
        x = graph.op("Sub", x, graph.constant(np.array(lowest, np.float32), f"{name}.lowest"))
        bias = (bias + lowest * quantized.restored().sum(0, dtype=np.float64)).astype(np.float32)
    highest = graph.op("ReduceMax", x if bounded else graph.op("Abs", x), graph.integers(-1), keepdims=1)  # [B, T, 1]
    # A vector of zeros becomes NaNs here, some integers in the product, and zeros where its step comes back.
    if quantization.activations == "two-part":
        scaled = graph.op("Div", x, highest)  # [B, T, K]: -1 to 1
        y = graph.op("Mul", _two_part_product(graph, scaled, name, quantized), highest)
    else:
        step = graph.op("Mul", highest, _step(graph, 255 if bounded else 127))  # [B, T, 1]
        zero_points = [] if bounded else [_ZERO_POINTS]
        integers = graph.op("QuantizeLinear", x, step, *zero_points, axis=-1, block_size=len(quantized.values))
        y = _product(graph, integers, _zero_point(graph, 0 if bounded else 128), name, quantized)
        y = graph.op("Mul", y, step)
    return graph.op("Add", y, graph.constant(bias, f"{name}.bias"), output=output)


def _two_part_product(graph: Graph, x: str, name: str, matrix: QuantizedMatrix) -> str:
    """x [B, T, K] within -1 to 1 -> x @ matrix [B, T, N]; 7 high bits and 7 low bits of x are rows of one product."""
    step, fine_step, zero_point = _step(graph, 63), _step(graph, 63 * 128), _zero_point(graph, 64)
    high = graph.op("QuantizeLinear", x, step, zero_point)
    rest = graph.op("Sub", x, graph.op("DequantizeLinear", high, step, zero_point))
    low = graph.op("QuantizeLinear", rest, fine_step, zero_point)
    parts = graph.op("Concat", high, low, axis=0)  # [2B, T, K]
    products = graph.op("Mul", _product(graph, parts, zero_point, name, matrix), fine_step)  # [2B, T, N]
    high, low = graph.op_many("Split", products, outputs=[f"{name}.high", f"{name}.low"], axis=0)
    return graph.op("Add", graph.op("Mul", high, graph.constant(np.array(128, np.float32), "low_steps")), low)


def _product(graph: Graph, x: str, zero_point: str, name: str, matrix: QuantizedMatrix) -> str:
    """uint8 x [B, T, K] -> (x - zero_point) @ matrix [B, T, N]."""
    values, scales, zero_points = _matrix(graph, name, matrix)
    one = graph.constant(np.array(1, np.float32), "one")
    if graph.has_many_rows:
        return graph.op("MatMulIntegerToFloat", x, values, one, scales, zero_point, zero_points, domain=CONTRIB)
    # For one row the operator is slow at the columns' scales, slower than a multiplication after it is (the output
    # head: 447 instead of 347 microseconds on one thread, 447 instead of 183 on two).
    y = graph.op("MatMulIntegerToFloat", x, values, one, one, zero_point, zero_points, domain=CONTRIB)
    return graph.op("Mul", y, scales)


def _matrix(graph: Graph, name: str, matrix: QuantizedMatrix) -> list[str]:
    return [
        graph.constant(matrix.values, f"{name}.weight"),
        graph.constant(matrix.scales, f"{name}.scales"),
        graph.constant(matrix.zero_points, f"{name}.zero_points"),
    ]


def _step(graph: Graph, steps: int) -> str:
    return graph.constant(np.array(1 / steps, np.float32), f"one_of_{steps}")


def _zero_point(graph: Graph, value: int) -> str:
    return graph.constant(np.array(value, np.uint8), f"zero_point_{value}")


def layer_inputs(path: Path) -> tuple[bytes, dict[str, str]]:
    """A float32 graph whose linear layers' inputs are outputs too.

    Returns:
        The graph, serialised without its external data, and the name of the input tensor of each layer.
    """
    model = onnx.load(path, load_external_data=False)
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = {
        node.input[1].removesuffix(".weight"): node.input[0]
        for node in model.graph.node
        if node.op_type == "MatMul" and node.input[1] in initializers and node.input[1].endswith(".weight")
    }
    for name in dict.fromkeys(inputs.values()):
        if name not in {output.name for output in model.graph.output}:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    return model.SerializeToString(), inputs
