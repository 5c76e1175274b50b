"""The matrix products of a decoder step, and nothing else of it."""

from __future__ import annotations

import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from function.engine.output_head import read_output_head
from function.engine.pack import ModelPack
from function.engine.sessions import DECODER_FILE

PRODUCT = "MatMulIntegerToFloat"


def open_products(pack: ModelPack, threads: int) -> ort.InferenceSession:
    """A graph of the INT8 products of a pack's decoder: every input is one of theirs, every output too."""
    model = onnx.load(pack.path / DECODER_FILE, load_external_data=False)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, integers in read_output_head(pack).items():
        weights[name].CopyFrom(numpy_helper.from_array(integers, name))
    onnx.load_external_data_for_model(model, str(pack.path))
    nodes = [node for node in model.graph.node if node.op_type == PRODUCT]
    sizes = [weights[node.input[1]].dims for node in nodes]  # [K, N] each
    inputs = {
        node.input[0]: helper.make_tensor_value_info(node.input[0], TensorProto.UINT8, ["B", 1, size[0]])
        for node, size in zip(nodes, sizes, strict=True)
    }
    outputs = [
        helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, ["B", 1, size[1]])
        for node, size in zip(nodes, sizes, strict=True)
    ]
    constants = {name: weights[name] for node in nodes for name in node.input if name in weights}
    graph = helper.make_graph(nodes, "products", list(inputs.values()), outputs, list(constants.values()))
    products = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return ort.InferenceSession(products.SerializeToString(), options, providers=["CPUExecutionProvider"])
