"""The pack's graphs run over one batch, in memory that is laid out for all its steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from function.engine.logits import Logits
from function.engine.pack import ModelPack

_ENCODED_AT_ONCE = 256  # source tokens, about: what caches hold of the widest layer's values
_ROOM = 16  # target tokens that keys and values are given room for at a time, at least,
_GROWTH = 4  # and one for so many that they have room for: what copying them costs a token does not grow with them

Array = NDArray[np.float32]


class Decoding:
    """A batch that grows by a token a step.

    ONNX Runtime is told where tensors lie once they lie there, not at every step; and what the decoder calls past and
    present is the same memory: a step writes its keys and values beside the earlier ones, and copies none of those.

    Shapes: B rows, S source tokens, P past target tokens, C that there is room for, L decoder layers, H heads,
    D features of a head.

    Args:
        source_ids: [B, S] int64.
        attention_mask: [B, S] int32, 1 where a token stands and 0 where padding does.
    """

    def __init__(
        self,
        pack: ModelPack,
        encoder: ort.InferenceSession,
        decoder: ort.InferenceSession,
        source_ids: NDArray[np.int64],
        attention_mask: NDArray[np.int32],
    ) -> None:
        self._pack = pack
        self._decoder = decoder
        self._parts = {
            output.name: output.shape[-1] for output in decoder.get_outputs() if output.name.startswith("logits.")
        }  # of the logits: target ids
        self._rows, source_tokens = source_ids.shape  # B, S
        self._attention_mask = attention_mask
        # Of all layers in one array: memory of that size comes in large pages.
        self._cross = np.empty(self._cache_shape(source_tokens), np.float32)
        self._past = np.zeros(self._cache_shape(_ROOM), np.float32)
        self._length = 0  # P
        self._encode(encoder, source_ids)
        self._bind()

    @property
    def cross(self) -> Array:
        """Cross-attention keys and values, layer by layer [2L, B, H, S, D]."""
        return self._cross[:, : self._rows]

    @property
    def past(self) -> Array:
        """Keys and values of the past target tokens, layer by layer [2L, B, H, P, D]."""
        return self._past[:, : self._rows, :, : self._length]

    def step(self, ids: Sequence[int]) -> Logits:
        """Decode one token a row.

        Args:
            ids: of each row, the target id that came last; at first the decoder start.

        Returns:
            The step's logits. The next step overwrites them.
        """
        if self._length == self._past.shape[3]:
            self._make_room()
        self._input_ids[:, 0] = ids
        self._position[:] = self._length
        self._past_mask[:, self._length] = 1
        self._decoder.run_with_iobinding(self._binding)
        self._length += 1
        return self._logits

    def keep(self, rows: Sequence[bool]) -> list[int]:
        """Go on without some rows. The last ones move to where they were: few are copied.

        Args:
            rows: of each row, whether it goes on.

        Returns:
            Which row each of those that are left was.
        """
        count = sum(rows)
        free = [row for row in range(count) if not rows[row]]
        moved = [row for row in range(count, len(rows)) if rows[row]]
        came_from = dict(zip(free, moved, strict=True))
        order = [came_from.get(row, row) for row in range(count)]
        for tensor in (self._cross, self._past):
            tensor[:, free] = tensor[:, moved]
        self._attention_mask = self._attention_mask[order]
        self._rows = count
        self._bind()
        return order

    def _encode(self, encoder: ort.InferenceSession, source_ids: NDArray[np.int64]) -> None:
        binding = encoder.io_binding()
        at_once = math.ceil(self._rows / math.ceil(source_ids.size / _ENCODED_AT_ONCE))
        for start in range(0, self._rows, at_once):
            rows = slice(start, start + at_once)
            binding.bind_ortvalue_input("input_ids", _value(source_ids[rows]))
            binding.bind_ortvalue_input("attention_mask", _value(self._attention_mask[rows]))
            names = _of_kind("cross_attention", self._pack.encoder.outputs)
            for name, tensor in zip(names, self._cross, strict=True):
                binding.bind_ortvalue_output(name, _value(tensor[rows]))
            encoder.run_with_iobinding(binding)

    def _make_room(self) -> None:
        room = self._length + max(_ROOM, self._length // _GROWTH)
        past = np.empty(self._cache_shape(room), np.float32)
        past[:, :, :, : self._length] = self.past
        past[:, :, :, self._length :] = 0  # no number at all would outlast being hidden
        self._past = past
        self._bind_past()

    def _cache_shape(self, tokens: int) -> tuple[int, ...]:
        network = self._pack.network
        return (2 * network.decoder_layers, self._rows, network.decoder_attention_heads, tokens, network.head_size)

    def _bind(self) -> None:
        self._input_ids = np.empty((self._rows, 1), np.int64)
        self._position = np.empty(self._rows, np.int64)
        logits = np.empty((sum(self._parts.values()), self._rows), np.float32)
        ends = np.cumsum(list(self._parts.values()))[:-1]
        parts = [part.reshape(self._rows, -1) for part in np.split(logits, ends)]
        log_sums = np.empty((self._rows, len(parts)), np.float32)
        # Of one row all parts lie side by side, and are one.
        self._logits = Logits(parts if self._rows > 1 else [logits.T], log_sums)
        self._binding = self._decoder.io_binding()
        for name, tensor in (
            ("input_ids", self._input_ids),
            ("position", self._position),
            ("attention_mask", self._attention_mask),
            *zip(_of_kind("cross_attention", self._pack.decoder.inputs), self.cross, strict=True),
        ):
            self._binding.bind_ortvalue_input(name, _value(tensor))
        for name, part in zip(self._parts, parts, strict=True):
            self._binding.bind_ortvalue_output(name, _value(part[:, None]))
        self._binding.bind_ortvalue_output("log_sums", _value(log_sums[:, None]))
        self._bind_past()

    def _bind_past(self) -> None:
        self._past_mask = np.zeros((1, self._past.shape[3]), np.int32)
        self._past_mask[:, : self._length] = 1
        self._binding.bind_ortvalue_input("past_mask", _value(self._past_mask))
        past_names = _of_kind("past_key_values", self._pack.decoder.inputs)
        present_names = _of_kind("present", self._pack.decoder.outputs)
        for past, present, tensor in zip(past_names, present_names, self._past, strict=True):
            value = _value(tensor[: self._rows])
            self._binding.bind_ortvalue_input(past, value)
            self._binding.bind_ortvalue_output(present, value)


def _of_kind(kind: str, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name.startswith(f"{kind}.")]


def _value(tensor: NDArray[Any]) -> ort.OrtValue:
    """The same memory as ONNX Runtime sees it."""
    return ort.OrtValue.ortvalue_from_numpy(tensor)
