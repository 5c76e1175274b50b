"""What a decoder step does, counted: operators that run, and bytes of weights that are read.

Time is measured in benchmarks. Counts do not depend on the machine: whoever changes one has changed the
cost of every step, and says so here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from function.engine.greedy import GreedySearch
from function.engine.pack import ModelPack
from function.engine.sessions import open_decoder, open_encoder
from function.engine.tokenizer import Tokenizer

# The starter: 2 decoder layers, d_model 256, feed-forward 1024, 7,000 target ids.
_LAYERS, _D, _FFN, _TARGET_IDS = 2, 256, 1024, 7000


@pytest.fixture(scope="module")
def decoder(int8_pack: Path) -> onnx.ModelProto:
    """The decoder step, which ONNX Runtime runs as it is written."""
    return onnx.load(int8_pack / "decoder.onnx", load_external_data=False)


def test_operators_of_a_step(decoder: onnx.ModelProto) -> None:
    counted = Counter(node.op_type for node in decoder.graph.node)

    parts = -(-_TARGET_IDS // 8192)  # of the output head
    inputs = 6 * _LAYERS + 1  # of products: q/k/v in one, output, query, output, two of the feed-forward; the head
    products = inputs - 1 + parts
    attentions, normalizations = 2 * _LAYERS, 3 * _LAYERS
    assert counted == {
        "MatMulIntegerToFloat": products,
        "QuantizeLinear": inputs,
        "Abs": inputs - _LAYERS,  # what goes into fc2 is shifted above zero instead
        "ReduceMax": inputs + attentions,
        "FusedMatMul": 3 * attentions,
        "MatMul": 2 * normalizations,
        # Scales of activations, weights, both; of the embedding; masks.
        "Mul": inputs + 2 * products + 2 * normalizations + 5,
        "Add": products + 2 * normalizations + attentions + 1,  # biases, residuals; what masks hide; the position
        "Sub": _LAYERS + attentions + normalizations + 3,  # what bounds fc2's inputs; masks; log-sums
        "Div": attentions + normalizations + 1,
        "Mod": 1,  # an embedding: its word's row, its byte of each word
        "BitShift": 1,
        "Sqrt": normalizations,
        "Exp": attentions,
        "QuickGelu": _LAYERS,
        "Split": _LAYERS,
        "Reshape": 2 * attentions,
        "TensorScatter": 2 * _LAYERS,  # new keys and values to the past ones
        "Concat": 4,  # shapes; log-sums
        "Gather": 3 + 2 * parts,
        "Cast": 5,
        "Unsqueeze": 6,
        "Shape": 3,
        "ConstantOfShape": 3,
        "LogSoftmax": parts,
    }


def test_bytes_of_weights_read_in_a_step(decoder: onnx.ModelProto) -> None:
    weights = {tensor.name: tensor for tensor in decoder.graph.initializer}
    read = [weights[node.input[1]] for node in decoder.graph.node if node.op_type == "MatMulIntegerToFloat"]

    assert {tensor.data_type for tensor in read} == {onnx.TensorProto.INT8}
    layer = 3 * _D * _D + _D * _D + _D * _D + _D * _D + 2 * _D * _FFN
    assert sum(int(np.prod(tensor.dims)) for tensor in read) == _LAYERS * layer + _D * _TARGET_IDS


def test_runs_of_the_graphs(int8_pack: Path) -> None:
    pack = ModelPack.open(int8_pack)
    encoder, decoder = (_CountingSession(open_(pack, 1)) for open_ in (open_encoder, open_decoder))
    sentences = [Tokenizer(pack).encode_text(text) for text in ("Good morning.", "The cat sat on the mat again.")]

    hypotheses = GreedySearch(pack, encoder, decoder)(sentences)

    assert encoder.runs == 1
    assert decoder.runs == max(len(hypothesis.token_ids) for hypothesis in hypotheses)
    assert decoder.rows == sum(len(hypothesis.token_ids) for hypothesis in hypotheses), "finished sentences still run"


class _CountingSession:
    def __init__(self, session: ort.InferenceSession) -> None:
        self._session = session
        self.runs = self.rows = 0

    def get_outputs(self) -> list[ort.NodeArg]:
        outputs: list[ort.NodeArg] = self._session.get_outputs()
        return outputs

    def io_binding(self) -> ort.IOBinding:
        return self._session.io_binding()

    def run_with_iobinding(self, binding: ort.IOBinding) -> None:
        self.runs += 1
        self.rows += binding.get_outputs()[0].shape()[0]
        self._session.run_with_iobinding(binding)
