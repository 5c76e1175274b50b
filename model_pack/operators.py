"""Attention and layer normalisation, of operators that round alike on every processor.

ONNX Runtime's own MultiHeadAttention, Softmax, LayerNormalization and sums add up in an order that depends on the
processor's vectors, and so does a product of one row with a matrix that is not constant. Element-wise operators do
not, nor do other products: they add along K, one by one. A product that is scaled counts among those, whatever its
rows (MlasSgemmOperation in onnxruntime's sgemm.cpp takes its kernels for one row only where alpha is 1). So the last
bit of an activation, and with it each 8-bit step that it is rounded to, depends neither on the processor nor on what
else is in the batch.

Shapes at line ends: B batch rows, H heads, T queries, S keys, D features of a head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from model_pack.graph import CONTRIB, Graph

_LAYER_NORM_EPSILON = 1e-5  # torch.nn.LayerNorm's default, which transformers leaves as it is
_HIDDEN = 1e9  # so far below the others are the scores of padding: exp makes nothing of them
_SCALE = 2.0  # of both sides of a division: exact


def attend(graph: Graph, q: str, k: str, v: str, head_size: int, ones: str, bias: str) -> str:
    """softmax(q @ k.T / sqrt(D) + bias) @ v [B, H, T, D]; q [B, H, T, D], k and v [B, H, S, D].

    Args:
        ones: of S, as `write_ones` gives them.
        bias: as `write_bias` gives it.
    """
    scores = graph.op("FusedMatMul", q, k, domain=CONTRIB, transB=1, alpha=head_size**-0.5)  # [B, H, T, S]
    scores = graph.op("Add", scores, bias)
    highest = graph.op("ReduceMax", scores, graph.integers(-1), keepdims=1)  # [B, H, T, 1]
    weights = graph.op("Exp", graph.op("Sub", scores, highest))
    sums = graph.op("FusedMatMul", weights, ones, domain=CONTRIB, alpha=_SCALE)  # [B, H, T, 1]
    return graph.op("Div", graph.op("FusedMatMul", weights, v, domain=CONTRIB, alpha=_SCALE), sums)


def write_ones(graph: Graph, length: str) -> str:
    """length [1] -> as many ones [length, 1]"""
    shape = graph.op("Concat", length, graph.integers(1), axis=0)
    return graph.op("ConstantOfShape", shape, value=numpy_helper.from_array(np.array([1], np.float32)))


def write_bias(graph: Graph, mask: str) -> str:
    """mask [B, S], 1 where a token stands and 0 where padding does -> what hides padding [B, 1, 1, S]"""
    tokens = graph.op("Cast", mask, to=TensorProto.FLOAT)
    padding = graph.op("Sub", tokens, graph.constant(np.array(1, np.float32), "one"))  # 0 or -1
    bias = graph.op("Mul", padding, graph.constant(np.array(_HIDDEN, np.float32), "hidden"))
    return graph.op("Unsqueeze", bias, graph.integers(1, 2))


@dataclass(frozen=True)
class Biased:
    """A value and a bias that nobody has added to it yet: what reads it has a bias of its own, and one takes it in."""

    value: str  # [B, T, N]
    bias: NDArray[np.float32]  # [N]

    def bias_of_linear(self, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> NDArray[np.float32]:
        """The bias [M] of a linear layer that reads the value alone; of the layer, weight [M, N] and bias [M]."""
        return (bias + weight.astype(np.float64) @ self.bias).astype(np.float32)


def normalize(graph: Graph, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32], name: str) -> Biased:
    """LayerNorm(x); x [B, T, N], weight and bias [N]"""
    size = len(weight)
    mean_of = graph.constant(np.full((size, 1), 1 / size, np.float32), f"mean_of_{size}")
    centred = graph.op("Sub", x, graph.op("MatMul", x, mean_of))
    variance = graph.op("MatMul", graph.op("Mul", centred, centred), mean_of)  # [B, T, 1]
    epsilon = graph.constant(np.array(_LAYER_NORM_EPSILON, np.float32), "layer_norm_epsilon")
    deviation = graph.op("Sqrt", graph.op("Add", variance, epsilon))
    weights = graph.constant(weight, f"{name}.weight")
    return Biased(graph.op("Mul", graph.op("Div", centred, deviation), weights), bias)
