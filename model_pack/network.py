"""The MarianMT network as two ONNX graphs, written straight from the checkpoint's tensors.

Encoder:      input_ids, attention_mask -> its states, and from them the cross-attention keys and values of
              every decoder layer. (Only checks ask for the states.)
Decoder step: one target id a row and its position, past and cross-attention keys/values, and of both which
              are in use -> logits, in parts, and the log-sum of each, and the past with this step's
              keys/values in it.
              Past has room for more tokens than there are; whoever runs the step gives past and present
              the same memory, and nothing of it is copied.

Source ids are the checkpoint's. Target ids count the rows that the output head keeps. Shapes at line
ends: B batch rows, S source tokens, C places for past target tokens, D d_model, H heads, N target ids.

After transformers' MarianMTModel (post-norm).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from function.engine.sessions import DECODER_FILE, ENCODER_FILE
from model_pack.config import Config
from model_pack.embedding import embed_source, embed_target, write_output_head
from model_pack.graph import CONTRIB, ExternalData, Graph
from model_pack.linear import linear, write_zero_points
from model_pack.operators import Biased, attend, normalize, write_bias, write_ones
from model_pack.parameters import Network

ENCODER_STATES = "encoder_hidden_states"

Tensors = dict[str, dict[str, list[str]]]  # by graph, then "inputs" and "outputs": names in order

_LOWEST = {"relu": 0.0, "gelu": -0.17, "swish": -0.27847, "silu": -0.27847}  # what an activation is never below


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
    x = _unbiased(graph.op("Add", embed_source(graph, ids, network), positions), network)  # [B, S, D]
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
        x = _add_and_normalize(graph, x, y, f"{layer}.self_attn.out_proj", f"{layer}.self_attn_layer_norm", network)
        x = _feed_forward(graph, x, layer, network)
    states = graph.output(ENCODER_STATES, np.float32, ["B", "S", config.d_model])
    graph.op("Add", x.value, graph.constant(x.bias, f"{ENCODER_STATES}.bias"), output=states)

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
    present = [graph.output(name, np.float32, ["B", heads, "C", size]) for name in cache_names("present", config)]

    write_zero_points(graph, ids, network.quantization)
    positions = graph.op("Gather", _position_table(graph, network), position)  # [B, D]
    positions = graph.op("Unsqueeze", positions, graph.integers(1))
    x = _unbiased(graph.op("Add", embed_target(graph, ids, network), positions), network)  # [B, 1, D]
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
        x = _add_and_normalize(graph, x, y, f"{layer}.self_attn.out_proj", f"{layer}.self_attn_layer_norm", network)

        q = _linear(graph, x, f"{layer}.encoder_attn.q_proj", network)
        q, (k, v) = graph.op("Reshape", q, graph.integers(0, heads, 1, size)), cross[own]  # [B, H, 1, D/H] and S for 1
        y = graph.op("Reshape", attend(graph, q, k, v, size, cross_ones, cross_bias), one_row)  # [B, 1, D]
        names = f"{layer}.encoder_attn.out_proj", f"{layer}.encoder_attn_layer_norm"
        x = _add_and_normalize(graph, x, y, *names, network)
        x = _feed_forward(graph, x, layer, network)
    write_output_head(graph, x, network)


def _ones_and_bias(graph: Graph, mask: str) -> tuple[str, str]:
    """What `attend` needs for the keys that a mask is of."""
    return write_ones(graph, graph.op("Shape", mask, start=1, end=2)), write_bias(graph, mask)


def cache_names(kind: str, config: Config) -> list[str]:
    return [f"{kind}.{layer}.{part}" for layer in range(config.decoder_layers) for part in ("key", "value")]


def _unbiased(x: str, network: Network) -> Biased:
    return Biased(x, np.zeros(network.config.d_model, np.float32))


def _linear(graph: Graph, x: Biased, name: str, network: Network) -> str:
    weight, bias = network.weights[f"{name}.weight"], network.weights[f"{name}.bias"]
    return linear(graph, x.value, weight, x.bias_of_linear(weight, bias), name, network.quantization)


def _project(graph: Graph, x: Biased, layer: str, network: Network) -> str:
    """x [B, T, D] -> queries, keys and values of a layer's self-attention, side by side [B, T, 3D], by one product."""
    names = [f"{layer}.self_attn.{projection}_proj" for projection in "qkv"]
    weight = np.concatenate([network.weights[f"{name}.weight"] for name in names])
    bias = np.concatenate([network.weights[f"{name}.bias"] for name in names])
    name = f"{layer}.self_attn.qkv_proj"
    return linear(graph, x.value, weight, x.bias_of_linear(weight, bias), name, network.quantization)


def _split_heads(graph: Graph, x: str, heads: int, size: int, output: str | None = None) -> str:
    """x [B, S, heads * size] -> [B, heads, S, size]"""
    y = graph.op("Reshape", x, graph.integers(0, 0, heads, size))
    return graph.op("Transpose", y, perm=[0, 2, 1, 3], output=output)


def _feed_forward(graph: Graph, x: Biased, layer: str, network: Network) -> Biased:
    activation = network.config.activation_function
    y = _activation(graph, _linear(graph, x, f"{layer}.fc1", network), activation)
    names = f"{layer}.fc2", f"{layer}.final_layer_norm"
    return _add_and_normalize(graph, x, y, *names, network, lowest=_LOWEST[activation])


def _activation(graph: Graph, x: str, name: str) -> str:
    if name == "relu":
        return graph.op("Relu", x)
    if name == "gelu":
        return graph.op("Gelu", x, domain=CONTRIB)
    return graph.op("QuickGelu", x, domain=CONTRIB, alpha=1.0)  # x * sigmoid(x): swish, also called silu


def _add_and_normalize(
    graph: Graph, x: Biased, y: str, name: str, norm: str, network: Network, *, lowest: float | None = None
) -> Biased:
    """LayerNorm(x + linear(y)); `name` and `norm` are the layers' names, `lowest` as `linear` has it."""
    weight, bias = network.weights[f"{name}.weight"], network.weights[f"{name}.bias"]
    y = linear(graph, y, weight, bias + x.bias, name, network.quantization, lowest=lowest)
    weight, bias = network.weights[f"{norm}.weight"], network.weights[f"{norm}.bias"]
    return normalize(graph, graph.op("Add", x.value, y), weight, bias, norm)


def _position_table(graph: Graph, network: Network) -> str:
    """[positions, D]: sines in the first half of the features, cosines in the second (as Marian has them)."""
    config = network.config
    half = (config.d_model + 1) // 2
    features = np.arange(config.d_model)
    angles = np.arange(config.max_position_embeddings)[:, None] / np.power(10000, 2 * (features // 2) / config.d_model)
    table = np.empty_like(angles, np.float32)
    table[:, :half], table[:, half:] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
    return graph.constant(table, "positions")
