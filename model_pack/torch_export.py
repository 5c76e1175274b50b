"""The encoder and the cached decoder step as torch modules, exported by torch.onnx.

A witness for the direct graphs: the same inputs and outputs, by another road. It needs torch and transformers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import MarianMTModel

from function.engine.sessions import DECODER_FILE, ENCODER_FILE
from model_pack.checkpoint import Checkpoint
from model_pack.errors import ModelPackError
from model_pack.network import ENCODER_STATES, Tensors, cache_names

OPSETS = range(14, 21)  # below 14 ORT's kernels are missing, above 20 torch's tracing exporter ends
DEFAULT_OPSET = 17

Axes = Mapping[str, Mapping[int, str]]  # tensor name -> axis -> the axis's name

_MASKED = -1e9
_BATCH, _SOURCE, _PLACES = 2, 5, 3  # sizes of the example: all different, so that no axis can pass for another


class EncoderWithCross(nn.Module):
    """input_ids, attention_mask [B, S] -> states [B, S, D], and every layer's cross keys and values [B, H, S, D/H]."""

    def __init__(self, model: MarianMTModel) -> None:
        super().__init__()
        self.encoder = model.get_encoder()
        self.layers = model.get_decoder().layers

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state  # [B, S, D]
        attentions = [layer.encoder_attn for layer in self.layers]
        cross = (
            _split_heads(projection(states), attention.num_heads)
            for attention in attentions
            for projection in (attention.k_proj, attention.v_proj)
        )
        return (states, *cross)


class DecoderStep(nn.Module):
    """A decoder step, with the inputs and outputs of the direct graph's."""

    def __init__(self, model: MarianMTModel) -> None:
        super().__init__()
        self.decoder = model.get_decoder()
        self.head = model.lm_head
        self.register_buffer("bias", model.final_logits_bias.clone())

    def forward(
        self, input_ids: Tensor, position: Tensor, past_mask: Tensor, attention_mask: Tensor, *caches: Tensor
    ) -> tuple[Tensor, ...]:
        past, cross = caches[: len(caches) // 2], caches[len(caches) // 2 :]
        embedded = self.decoder.embed_tokens(input_ids) * self.decoder.embed_scale
        x = embedded + self.decoder.embed_positions.weight[position][:, None]  # [B, 1, D]
        unused, padding = (_masked(mask, x.dtype) for mask in (past_mask, attention_mask))
        places = torch.arange(past_mask.shape[1])[None, None, :, None]  # [1, 1, C, 1]
        is_new = places == position[:, None, None, None]  # [B, 1, C, 1]
        present: list[Tensor] = []
        for index, layer in enumerate(self.decoder.layers):
            attention = layer.self_attn
            keys, values = (
                torch.where(is_new, _split_heads(projection(x), attention.num_heads), old)
                for old, projection in zip(
                    past[2 * index : 2 * index + 2], (attention.k_proj, attention.v_proj), strict=True
                )
            )  # [B, H, C, D/H]
            present += [keys, values]
            x = layer.self_attn_layer_norm(x + _attend(attention, x, keys, values, unused))
            cross_keys, cross_values = cross[2 * index : 2 * index + 2]
            crossed = _attend(layer.encoder_attn, x, cross_keys, cross_values, padding)
            x = layer.encoder_attn_layer_norm(x + crossed)
            x = layer.final_layer_norm(x + layer.fc2(layer.activation_fn(layer.fc1(x))))
        logits = self.head(x) + self.bias
        return (logits, logits.logsumexp(-1, keepdim=True), *present)


def write_torch_graphs(checkpoint: Checkpoint, target_ids: list[int], folder: Path, opset: int) -> Tensors:
    """Export both graphs of a checkpoint into `folder`; the output head keeps every row.

    Raises:
        ModelPackError: torch cannot export at this opset; the message says what to do.
    """
    if target_ids != list(range(checkpoint.config.decoder_vocab_size)):
        raise AssertionError("an exported output head has every row")
    model = MarianMTModel.from_pretrained(checkpoint.path, attn_implementation="eager", dtype=torch.float32).eval()
    layers, heads = checkpoint.config.decoder_layers, checkpoint.config.decoder_attention_heads
    size = checkpoint.config.d_model // heads
    past, cross, present = (
        cache_names(kind, checkpoint.config) for kind in ("past_key_values", "cross_attention", "present")
    )
    tokens = {0: "B", 1: "S"}
    cached: dict[str, Mapping[int, str]] = {
        **{name: {0: "B", 2: "C"} for name in past},
        **{name: {0: "B", 2: "S"} for name in cross},
    }
    ids = torch.zeros(_BATCH, _SOURCE, dtype=torch.int64)
    mask = torch.ones(_BATCH, _SOURCE, dtype=torch.int32)
    tensors: Tensors = {
        "encoder": {"inputs": ["input_ids", "attention_mask"], "outputs": [ENCODER_STATES, *cross]},
        "decoder": {
            "inputs": ["input_ids", "position", "past_mask", "attention_mask", *past, *cross],
            "outputs": ["logits.0", "log_sums", *present],
        },
    }
    export(
        EncoderWithCross(model).eval(),
        (ids, mask),
        tensors["encoder"],
        {
            "input_ids": tokens,
            "attention_mask": tokens,
            ENCODER_STATES: tokens,
            **{name: cached[name] for name in cross},
        },
        folder / ENCODER_FILE,
        opset,
    )
    position, past_mask = torch.ones(_BATCH, dtype=torch.int64), torch.ones(1, _PLACES, dtype=torch.int32)
    old = [torch.zeros(_BATCH, heads, _PLACES, size) for _ in range(2 * layers)]
    encoded = [torch.zeros(_BATCH, heads, _SOURCE, size) for _ in range(2 * layers)]
    export(
        DecoderStep(model).eval(),
        (ids[:, :1], position, past_mask, mask, *old, *encoded),
        tensors["decoder"],
        {
            "input_ids": {0: "B"},
            "position": {0: "B"},
            "past_mask": {1: "C"},
            "attention_mask": tokens,
            **cached,
            "logits.0": {0: "B"},
            "log_sums": {0: "B"},
            **{name: {0: "B", 2: "C"} for name in present},
        },
        folder / DECODER_FILE,
        opset,
    )
    return tensors


def export(
    module: nn.Module,
    example: Sequence[Tensor],
    names: Mapping[str, Sequence[str]],
    axes: Axes,
    path: Path,
    opset: int,
) -> None:
    """torch.onnx.export with its three usual failures put into words.

    Args:
        example: the inputs, in order; axes that may differ in size must differ here.
        names: "inputs" and "outputs", in order.
        axes: the axes that may change their size, and a name for each; one name is one size.

    Raises:
        ModelPackError: the module is not in eval mode, a name stands for two sizes, or the opset lacks an
            operator that the module needs.
    """
    if any(part.training for part in module.modules()):
        raise ModelPackError(
            "the module is in training mode, so dropout would be exported with it: call .eval() on it first."
        )
    _check_axes(dict(zip(names["inputs"], example, strict=True)), axes)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the tracer, about shapes that are constants on purpose
            torch.onnx.export(
                module,
                tuple(example),
                str(path),
                input_names=list(names["inputs"]),
                output_names=list(names["outputs"]),
                dynamic_axes={name: dict(named) for name, named in axes.items()},
                opset_version=opset,
                dynamo=False,
            )
    except (torch.onnx.errors.UnsupportedOperatorError, torch.onnx.errors.SymbolicValueError) as error:
        raise ModelPackError(
            f"opset {opset} has no way to say an operator of {type(module).__name__}: choose a higher --opset "
            f"(up to {OPSETS[-1]}), or write that part with other operators. torch says: {str(error).splitlines()[0]}"
        ) from error


def _check_axes(inputs: Mapping[str, Tensor], axes: Axes) -> None:
    sizes: dict[str, tuple[int, str]] = {}
    for tensor, named in axes.items():
        for axis, name in named.items():
            if tensor not in inputs:
                continue  # an output: its sizes are not known before the export
            size, place = inputs[tensor].shape[axis], f"axis {axis} of {tensor}"
            earlier, earlier_place = sizes.setdefault(name, (size, place))
            if size != earlier:
                raise ModelPackError(
                    f"the dynamic axis {name!r} has two meanings: it is {earlier} in {earlier_place} and {size} in "
                    f"{place}. Give each size a name of its own."
                )


def _split_heads(x: Tensor, heads: int) -> Tensor:
    return x.view(x.shape[0], -1, heads, x.shape[2] // heads).transpose(1, 2)  # [B, T, D] -> [B, H, T, D/H]


def _masked(mask: Tensor, dtype: torch.dtype) -> Tensor:
    return (1 - mask[:, None, None, :].to(dtype)) * _MASKED  # [B, T] -> [B, 1, 1, T]


def _attend(attention: Any, x: Tensor, keys: Tensor, values: Tensor, masked: Tensor) -> Tensor:
    """x [B, 1, D]; keys, values [B, H, T, D/H]; masked [B, 1, 1, T] is added to the scores."""
    scores = _split_heads(attention.q_proj(x), attention.num_heads) @ keys.transpose(2, 3) * attention.scaling
    mixed = ((scores + masked).softmax(-1) @ values).transpose(1, 2)  # [B, 1, H, D/H]
    return attention.out_proj(mixed.reshape(x.shape))
