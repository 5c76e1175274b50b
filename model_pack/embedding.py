"""Embeddings and the output head: tables that a checkpoint may share, each stored once.

Shapes at line ends: B batch rows, S source tokens, T tokens of a row, D d_model, N target ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from function.engine.output_head import IDS_A_WORD, OUTPUT_HEAD_FILE, WORD_TYPE, head_parts
from model_pack.graph import Graph
from model_pack.linear import linear, quantized_linear
from model_pack.operators import Biased
from model_pack.parameters import HEAD, Network
from model_pack.quantization import Quantization, QuantizedMatrix, quantize_matrix

_NEVER = -1e9  # logit of the ids that only fill the output head's last word


def write_output_head(graph: Graph, x: Biased, network: Network) -> None:
    """x [B, 1, D] -> the graph's outputs "logits.0", ... and "log_sums", as function/engine/logits.py has them."""
    given, rows = network.weights.get("final_logits_bias"), _head_rows(network)
    bias = np.zeros(len(rows), np.float32) if given is None else given.reshape(-1)[network.target_ids]
    bias = x.bias_of_linear(rows, bias)
    if network.packed_by is None:
        logits = _logits(graph, 0, len(rows))
        linear(graph, x.value, rows, bias, HEAD, network.quantization, output=logits)
        _write_log_sums(graph, {logits: bias})
        return
    head = _packed_head(network, network.packed_by)
    bias = np.pad(bias, (0, network.logits - len(bias)), constant_values=_NEVER)
    parts = {}
    for number, (name, part) in enumerate(head_parts(network.logits // IDS_A_WORD).items()):
        ids = slice(part.start * IDS_A_WORD, part.stop * IDS_A_WORD)
        columns = head.columns(ids)
        graph.given(columns.values.dtype, columns.values.shape, f"{name}.weight", OUTPUT_HEAD_FILE)
        logits = _logits(graph, number, columns.values.shape[1])
        quantized_linear(graph, x.value, columns, bias[ids], name, network.packed_by, part_of=HEAD, output=logits)
        parts[logits] = bias[ids]
    _write_log_sums(graph, parts)


def _logits(graph: Graph, number: int, ids: int) -> str:
    return graph.output(f"logits.{number}", np.float32, ["B", 1, ids])


def _write_log_sums(graph: Graph, parts: dict[str, NDArray[np.float32]]) -> None:
    """Log-sums [B, 1, parts] of logits, given with their biases: what a logit is above its log-softmax."""
    logits, log_softmax = [], []
    for part, bias in parts.items():
        one = graph.integers(int(bias.argmax()))  # not an id whose bias hides it: of such numbers no digits are left
        logits.append(graph.op("Gather", part, one, axis=-1))
        log_softmax.append(graph.op("Gather", graph.op("LogSoftmax", part, axis=-1), one, axis=-1))
    output = graph.output("log_sums", np.float32, ["B", 1, len(parts)])
    graph.op("Sub", *(graph.op("Concat", *values, axis=-1) for values in (logits, log_softmax)), output=output)


def _head_rows(network: Network) -> NDArray[np.float32]:
    """[N, D]"""
    return network.embeddings.head[network.target_ids]


def _packed_head(network: Network, quantization: Quantization) -> QuantizedMatrix:
    """The head's columns [D, N], with zeros after them up to full words."""
    columns = _head_rows(network).T
    return quantize_matrix(np.pad(columns, [(0, 0), (0, network.logits - columns.shape[1])]), quantization)


def embed_target(graph: Graph, ids: str, network: Network) -> str:
    """ids [B, T] -> [B, T, D]. A tied embedding is read from the output head: stored once."""
    embeddings = network.embeddings
    if network.packed_by is not None:
        return _embed_packed(graph, ids, network, network.packed_by)
    if embeddings.target is embeddings.head:
        return _embed(graph, ids, np.ascontiguousarray(_head_rows(network).T), HEAD, network, axis=1)
    if embeddings.target is embeddings.source:
        checkpoint_ids = graph.constant(np.array(network.target_ids, np.int64), "checkpoint_id_of_target_id")
        return embed_source(graph, graph.op("Gather", checkpoint_ids, ids), network)
    return _embed(graph, ids, embeddings.target[network.target_ids], "target_embedding", network, axis=0)


def embed_source(graph: Graph, ids: str, network: Network) -> str:
    """ids [B, S] -> [B, S, D]. Of a table that is the output head's too, only the other rows are stored again."""
    table = network.embeddings.source
    if table is not network.embeddings.head:
        return _embed(graph, ids, table, "source_embedding", network, axis=0)

    target_count = len(network.target_ids)
    others = np.setdiff1d(np.arange(len(table)), network.target_ids)
    row_of_id = np.empty(len(table), np.int32)  # target rows first
    row_of_id[network.target_ids] = np.arange(target_count)
    row_of_id[others] = np.arange(target_count, len(table))
    rows = graph.op("Gather", graph.constant(row_of_id, "row_of_source_id"), ids)  # [B, S]
    if not len(others):
        return embed_target(graph, graph.op("Cast", rows, to=TensorProto.INT64), network)

    first_other = graph.constant(np.array(target_count, np.int32), "first_other_row")
    last_target = graph.constant(np.array(target_count - 1, np.int32), "last_target_row")
    zero = graph.constant(np.array(0, np.int32), "row_zero")
    target_rows = graph.op("Min", rows, last_target)
    other_rows = graph.op("Max", graph.op("Sub", rows, first_other), zero)
    is_target = graph.op("Unsqueeze", graph.op("Less", rows, first_other), graph.integers(-1))  # [B, S, 1]
    target_rows = graph.op("Cast", target_rows, to=TensorProto.INT64)
    from_target = embed_target(graph, target_rows, network)  # [B, S, D]
    from_others = _embed(graph, other_rows, table[others], "source_embedding", network, axis=0)  # [B, S, D]
    return graph.op("Where", is_target, from_target, from_others)


def _embed(graph: Graph, ids: str, table: NDArray[np.float32], name: str, network: Network, axis: int) -> str:
    """Look up rows (axis 0) or columns (axis 1) of a table: ids [B, T] -> [B, T, D]."""
    quantization = network.quantization
    if quantization is None or not quantization.covers(name):
        return _scale_embedding(graph, _look_up(graph, ids, table, f"{name}.weight", axis), network)
    # One scale a row of the embedding, which is a column of the output head.
    columns = table if axis == 1 else np.ascontiguousarray(table.T)
    quantized = quantize_matrix(columns, quantization, is_multiplied=axis == 1)
    values = quantized.values if axis == 1 else np.ascontiguousarray(quantized.values.T)
    x = graph.op("Cast", _look_up(graph, ids, values, f"{name}.weight", axis), to=TensorProto.FLOAT)
    if quantization.weights == "uint8":
        x = graph.op("Sub", x, graph.constant(np.array(128, np.float32), "embedding_zero_point"))
    x = graph.op("Mul", x, _scales_of(graph, ids, quantized, name))
    return _scale_embedding(graph, x, network)


def _look_up(graph: Graph, ids: str, table: NDArray[Any], name: str, axis: int) -> str:
    x = graph.op("Gather", graph.constant(table, name), ids, axis=axis)
    return graph.op("Transpose", x, perm=[1, 2, 0]) if axis == 1 else x  # [D, B, T] -> [B, T, D]


def _embed_packed(graph: Graph, ids: str, network: Network, quantization: Quantization) -> str:
    """Look up rows of the output head, of which a word has a byte each: ids [B, T] -> [B, T, D]."""
    head = _packed_head(network, quantization)
    words = np.ascontiguousarray(np.ascontiguousarray(head.values).view(WORD_TYPE).T)  # [N / 8, D]
    a_word = graph.constant(np.array(IDS_A_WORD), "ids_a_word")
    rows = graph.op("Div", ids, a_word)
    x = graph.op("Gather", graph.constant(words, f"{HEAD}.words", OUTPUT_HEAD_FILE), rows)  # [B, T, D] uint64
    bits = graph.op("Mul", graph.op("Mod", ids, a_word), graph.constant(np.array(8), "bits_of_an_integer"))
    bits = graph.op("Unsqueeze", graph.op("Cast", bits, to=TensorProto.UINT64), graph.integers(-1))  # [B, T, 1]
    x = graph.op("Cast", graph.op("BitShift", x, bits, direction="RIGHT"), to=TensorProto.INT8)  # the lowest byte
    x = graph.op("Mul", graph.op("Cast", x, to=TensorProto.FLOAT), _scales_of(graph, ids, head, HEAD))
    return _scale_embedding(graph, x, network)


def _scales_of(graph: Graph, ids: str, table: QuantizedMatrix, name: str) -> str:
    """The scale of each id [B, T, 1], or the one for all []."""
    scales = graph.constant(table.scales, f"{name}.scales")
    if not table.scales.ndim:
        return scales
    return graph.op("Unsqueeze", graph.op("Gather", scales, ids), graph.integers(-1))


def _scale_embedding(graph: Graph, x: str, network: Network) -> str:
    if not network.config.scale_embedding:
        return x
    return graph.op("Mul", x, graph.constant(np.array(np.sqrt(network.config.d_model), np.float32), "embedding_scale"))
