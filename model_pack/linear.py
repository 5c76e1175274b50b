"""Linear layers as graph nodes, quantised or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from model_pack.graph import CONTRIB, Graph
from model_pack.quantization import Quantization, quantize_matrix


def linear(
    graph: Graph,
    x: str,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    name: str,
    quantization: Quantization | None,
    output: str | None = None,
) -> str:
    """x [..., K] -> x @ weight.T + bias [..., N]; weight [N, K] as torch stores it."""
    matrix = np.ascontiguousarray(weight.T)  # [K, N]
    bias_name = graph.constant(bias, f"{name}.bias")
    if quantization is None or not quantization.covers(name):
        product = graph.op("MatMul", x, graph.constant(matrix, f"{name}.weight"))
        return graph.op("Add", product, bias_name, output=output)

    quantized = quantize_matrix(matrix, quantization)
    values = graph.constant(quantized.values, f"{name}.weight")
    scales = graph.constant(quantized.scales, f"{name}.scales")
    zero_points = graph.constant(quantized.zero_points, f"{name}.zero_points")
    if quantization.activation_ranges is None:
        inputs = [x, values, scales, zero_points, bias_name]
        return graph.op("DynamicQuantizeMatMul", *inputs, domain=CONTRIB, output=output)

    scale, zero_point = quantization.activation_ranges[name].scale_and_zero_point()
    x_scale = graph.constant(np.array(scale), f"{name}.input_scale")
    x_zero_point = graph.constant(np.array(zero_point), f"{name}.input_zero_point")
    x = graph.op("QuantizeLinear", x, x_scale, x_zero_point)
    inputs = [x, values, x_scale, scales, x_zero_point, zero_points, bias_name]
    return graph.op("MatMulIntegerToFloat", *inputs, domain=CONTRIB, output=output)


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
        if node.op_type == "MatMul" and node.input[1] in initializers
    }
    for name in dict.fromkeys(inputs.values()):
        if name not in {output.name for output in model.graph.output}:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    return model.SerializeToString(), inputs
