"""The MarianMT network as two ONNX graphs, written straight from the checkpoint's tensors.

Encoder:      input_ids, attention_mask -> its states, and from them the cross-attention keys and values of
              every decoder layer. (Only checks ask for the states.)
Decoder step: one target id a row and its position, past and cross-attention keys/values, and of both which
              are in use -> logits and their log-softmax, and the past with this step's keys/values in it.
              Past has room for more tokens than there are; whoever runs the step gives past and present
              the same memory, and nothing of it is copied.

Source ids are the checkpoint's. Target ids count the rows that the output head keeps. Shapes at line
ends: B batch rows, S source tokens, C places for past target tokens, D d_model, H heads, N target ids.

After transformers' MarianMTModel (post-norm).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from function.engine.output_head import IDS_A_WORD, OUTPUT_HEAD_FILE, WORD_TYPE, head_parts
from function.engine.sessions import DECODER_FILE, ENCODER_FILE
from model_pack.checkpoint import Embeddings, Weights
from model_pack.config import Config
from model_pack.graph import CONTRIB, ExternalData, Graph
from model_pack.linear import linear, quantized_linear, write_zero_points
from model_pack.operators import attend, normalize, write_bias, write_ones
from model_pack.quantization import Quantization, QuantizedMatrix, quantize_matrix

ENCODER_STATES = "encoder_hidden_states"
HEAD = "output_head"  # the layer's name, as patterns of layers to exclude see it

Tensors = dict[str, dict[str, list[str]]]  # by graph, then "inputs" and "outputs": names in order

_NEVER = -1e9  # logit of the ids that only fill the output head's last word
_LOWEST = {"relu": 0.0, "gelu": -0.17, "swish": -0.27847, "silu": -0.27847}  # what an activation is never below


@dataclass(frozen=True)
class Network:
    """Everything the two graphs are written from."""

    config: Config
    weights: Weights
    embeddings: Embeddings
    target_ids: list[int]  # the checkpoint's id of each target id
    quantization: Quantization | None  # None: float32

    @property
    def packed_by(self) -> Quantization | None:
        """What makes of the output head words that eight target ids share (function/engine/output_head.py), if any."""
        is_tied = self.embeddings.target is self.embeddings.head
        return self.quantization if is_tied and self.quantization and self.quantization.packs(HEAD) else None

    @property
    def logits(self) -> int:
        """How many a row has: one for each target id, and for each that the head's last word has room for."""
        return len(self.target_ids) + (-len(self.target_ids) % IDS_A_WORD if self.packed_by else 0)


def write_network(network: Network, out: Path) -> Tensors:
    """Write both graphs and their weights into folder `out`; returns the names of their tensors."""
    tensors: Tensors = {}
    external = ExternalData(out)
    for name, file_name, write in (
        ("encoder", ENCODER_FILE, write_encoder),
        ("decoder", DECODER_FILE, write_decoder_step),
    ):
        graph = Graph(name, external, has_many_rows=name == "encoder")
        write(graph, network)
        graph.save(out / file_name)
        tensors[name] = {"inputs": graph.input_names, "outputs": graph.output_names}
    return tensors


def write_encoder(graph: Graph, network: Network) -> None:
    config = network.config
    ids = graph.input("input_ids", np.int64, ["B", "S"])
    mask = graph.input("attention_mask", np.int32, ["B", "S"])
    write_zero_points(graph, ids, network.quantization)
    length = graph.op("Shape", ids, start=1, end=2)  # [1]: S
    positions = graph.op("Slice", _position_table(graph, network), graph.integers(0), length)  # [S, D]
    x = graph.op("Add", _embed_source(graph, ids, network), positions)  # [B, S, D]
    heads, size = config.encoder_attention_heads, config.d_model // config.encoder_attention_heads
    ones, bias = _ones_and_bias(graph, mask)
    for index in range(config.encoder_layers):
        layer = f"model.encoder.layers.{index}"
        q, k, v = (
            _split_heads(graph, _linear(graph, x, f"{layer}.self_attn.{name}_proj", network), heads, size)
            for name in "qkv"
        )  # [B, H, S, D/H]
        y = graph.op("Transpose", attend(graph, q, k, v, size, ones, bias), perm=[0, 2, 1, 3])
        y = graph.op("Reshape", y, graph.integers(0, 0, config.d_model))  # [B, S, D]
        y = _linear(graph, y, f"{layer}.self_attn.out_proj", network)
        x = _add_and_normalize(graph, x, y, f"{layer}.self_attn_layer_norm", network)
        x = _feed_forward(graph, x, layer, network)
    x = graph.op("Identity", x, output=graph.output(ENCODER_STATES, np.float32, ["B", "S", config.d_model]))

    # The keys and values that the decoder's cross-attention reads at every step.
    heads, size = config.decoder_attention_heads, config.d_model // config.decoder_attention_heads
    for name in cache_names("cross_attention", config):
        _, layer, part = name.split(".")
        y = _linear(graph, x, f"model.decoder.layers.{layer}.encoder_attn.{part[0]}_proj", network)
        _split_heads(graph, y, heads, size, output=graph.output(name, np.float32, ["B", heads, "S", size]))


def write_decoder_step(graph: Graph, network: Network) -> None:
    config = network.config
    heads, size = config.decoder_attention_heads, config.d_model // config.decoder_attention_heads
    ids = graph.input("input_ids", np.int64, ["B", 1])
    position = graph.input("position", np.int64, ["B"])
    past_mask = graph.input("past_mask", np.int32, [1, "C"])  # 1 where a target token stands, this step's included
    mask = graph.input("attention_mask", np.int32, ["B", "S"])
    past = [graph.input(name, np.float32, ["B", heads, "C", size]) for name in cache_names("past_key_values", config)]
    cross = [graph.input(name, np.float32, ["B", heads, "S", size]) for name in cache_names("cross_attention", config)]
    logits, log_probabilities = (
        graph.output(name, np.float32, ["B", 1, network.logits]) for name in ("logits", "log_probabilities")
    )
    present = [graph.output(name, np.float32, ["B", heads, "C", size]) for name in cache_names("present", config)]

    write_zero_points(graph, ids, network.quantization)
    positions = graph.op("Gather", _position_table(graph, network), position)  # [B, D]
    x = graph.op("Add", _embed_target(graph, ids, network), graph.op("Unsqueeze", positions, graph.integers(1)))
    past_ones, past_bias = _ones_and_bias(graph, past_mask)
    cross_ones, cross_bias = _ones_and_bias(graph, mask)
    one_row = graph.integers(0, 1, config.d_model)
    for index in range(config.decoder_layers):
        layer = f"model.decoder.layers.{index}"
        own = slice(2 * index, 2 * index + 2)  # this layer's key and value
        projected = graph.op("Reshape", _project(graph, x, layer, network), graph.integers(0, 3 * heads, 1, size))
        parts = [f"{layer}.self_attn.{name}" for name in "qkv"]
        q, *new = graph.op_many("Split", projected, graph.integers(heads, heads, heads), outputs=parts, axis=1)
        k, v = (
            graph.op("TensorScatter", old, token, position, axis=2, output=name)
            for old, token, name in zip(past[own], new, present[own], strict=True)
        )  # [B, H, C, D/H]
        y = graph.op("Reshape", attend(graph, q, k, v, size, past_ones, past_bias), one_row)  # [B, 1, D]
        y = _linear(graph, y, f"{layer}.self_attn.out_proj", network)
        x = _add_and_normalize(graph, x, y, f"{layer}.self_attn_layer_norm", network)

        q = _linear(graph, x, f"{layer}.encoder_attn.q_proj", network)
        q, (k, v) = graph.op("Reshape", q, graph.integers(0, heads, 1, size)), cross[own]  # [B, H, 1, D/H] and S for 1
        y = graph.op("Reshape", attend(graph, q, k, v, size, cross_ones, cross_bias), one_row)  # [B, 1, D]
        y = _linear(graph, y, f"{layer}.encoder_attn.out_proj", network)
        x = _add_and_normalize(graph, x, y, f"{layer}.encoder_attn_layer_norm", network)
        x = _feed_forward(graph, x, layer, network)
    _output_head(graph, x, network, output=logits)
    # Of the logits two may differ so little that their logarithms do not: the choice is made among the former.
    graph.op("LogSoftmax", logits, axis=-1, output=log_probabilities)


def _ones_and_bias(graph: Graph, mask: str) -> tuple[str, str]:
    """What `attend` needs for the keys that a mask is of."""
    return write_ones(graph, graph.op("Shape", mask, start=1, end=2)), write_bias(graph, mask)


def cache_names(kind: str, config: Config) -> list[str]:
    return [f"{kind}.{layer}.{part}" for layer in range(config.decoder_layers) for part in ("key", "value")]


def _linear(graph: Graph, x: str, name: str, network: Network, lowest: float | None = None) -> str:
    weight, bias = network.weights[f"{name}.weight"], network.weights[f"{name}.bias"]
    return linear(graph, x, weight, bias, name, network.quantization, lowest=lowest)


def _project(graph: Graph, x: str, layer: str, network: Network) -> str:
    """x [B, T, D] -> queries, keys and values of a layer's self-attention, side by side [B, T, 3D], by one product."""
    names = [f"{layer}.self_attn.{projection}_proj" for projection in "qkv"]
    weight = np.concatenate([network.weights[f"{name}.weight"] for name in names])
    bias = np.concatenate([network.weights[f"{name}.bias"] for name in names])
    return linear(graph, x, weight, bias, f"{layer}.self_attn.qkv_proj", network.quantization)


def _split_heads(graph: Graph, x: str, heads: int, size: int, output: str | None = None) -> str:
    """x [B, S, heads * size] -> [B, heads, S, size]"""
    y = graph.op("Reshape", x, graph.integers(0, 0, heads, size))
    return graph.op("Transpose", y, perm=[0, 2, 1, 3], output=output)


def _feed_forward(graph: Graph, x: str, layer: str, network: Network) -> str:
    activation = network.config.activation_function
    y = _linear(graph, x, f"{layer}.fc1", network)
    y = _activation(graph, y, activation)
    y = _linear(graph, y, f"{layer}.fc2", network, lowest=_LOWEST[activation])
    return _add_and_normalize(graph, x, y, f"{layer}.final_layer_norm", network)


def _activation(graph: Graph, x: str, name: str) -> str:
    if name == "relu":
        return graph.op("Relu", x)
    if name == "gelu":
        return graph.op("Gelu", x, domain=CONTRIB)
    return graph.op("QuickGelu", x, domain=CONTRIB, alpha=1.0)  # x * sigmoid(x): swish, also called silu


def _add_and_normalize(graph: Graph, x: str, y: str, name: str, network: Network) -> str:
    """LayerNorm(x + y)"""
    weight, bias = network.weights[f"{name}.weight"], network.weights[f"{name}.bias"]
    return normalize(graph, graph.op("Add", x, y), weight, bias, name)


def _output_head(graph: Graph, x: str, network: Network, output: str) -> None:
    """x [B, 1, D] -> logits [B, 1, N], from the rows of the output head that are target ids."""
    given = network.weights.get("final_logits_bias")
    bias = np.zeros(len(network.target_ids), np.float32) if given is None else given.reshape(-1)[network.target_ids]
    if network.packed_by is None:
        linear(graph, x, _head_rows(network), bias, HEAD, network.quantization, output=output)
        return
    head = _packed_head(network, network.packed_by)
    bias = np.pad(bias, (0, network.logits - len(bias)), constant_values=_NEVER)
    logits = []
    for name, part in head_parts(network.logits // IDS_A_WORD).items():
        ids = slice(part.start * IDS_A_WORD, part.stop * IDS_A_WORD)
        columns = head.columns(ids)
        graph.given(columns.values.dtype, columns.values.shape, f"{name}.weight", OUTPUT_HEAD_FILE)
        logits.append(quantized_linear(graph, x, columns, bias[ids], name, network.packed_by, part_of=HEAD))
    graph.op("Concat", *logits, axis=-1, output=output)


def _head_rows(network: Network) -> NDArray[np.float32]:
    """[N, D]"""
    return network.embeddings.head[network.target_ids]


def _packed_head(network: Network, quantization: Quantization) -> QuantizedMatrix:
    """The head's columns [D, N], with zeros after them up to full words."""
    columns = _head_rows(network).T
    return quantize_matrix(np.pad(columns, [(0, 0), (0, network.logits - columns.shape[1])]), quantization)


def _embed_target(graph: Graph, ids: str, network: Network) -> str:
    """ids [B, T] -> [B, T, D]. A tied embedding is read from the output head: stored once."""
    embeddings = network.embeddings
    if network.packed_by is not None:
        return _embed_packed(graph, ids, network, network.packed_by)
    if embeddings.target is embeddings.head:
        return _embed(graph, ids, np.ascontiguousarray(_head_rows(network).T), HEAD, network, axis=1)
    if embeddings.target is embeddings.source:
        checkpoint_ids = graph.constant(np.array(network.target_ids, np.int64), "checkpoint_id_of_target_id")
        return _embed_source(graph, graph.op("Gather", checkpoint_ids, ids), network)
    return _embed(graph, ids, embeddings.target[network.target_ids], "target_embedding", network, axis=0)


def _embed_source(graph: Graph, ids: str, network: Network) -> str:
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
        return _embed_target(graph, graph.op("Cast", rows, to=TensorProto.INT64), network)

    first_other = graph.constant(np.array(target_count, np.int32), "first_other_row")
    last_target = graph.constant(np.array(target_count - 1, np.int32), "last_target_row")
    zero = graph.constant(np.array(0, np.int32), "row_zero")
    target_rows = graph.op("Min", rows, last_target)
    other_rows = graph.op("Max", graph.op("Sub", rows, first_other), zero)
    is_target = graph.op("Unsqueeze", graph.op("Less", rows, first_other), graph.integers(-1))  # [B, S, 1]
    target_rows = graph.op("Cast", target_rows, to=TensorProto.INT64)
    from_target = _embed_target(graph, target_rows, network)  # [B, S, D]
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


def _position_table(graph: Graph, network: Network) -> str:
    """[positions, D]: sines in the first half of the features, cosines in the second (as Marian has them)."""
    config = network.config
    half = (config.d_model + 1) // 2
    features = np.arange(config.d_model)
    angles = np.arange(config.max_position_embeddings)[:, None] / np.power(10000, 2 * (features // 2) / config.d_model)
    table = np.empty_like(angles, np.float32)
    table[:, :half], table[:, half:] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
    return graph.constant(table, "positions")
