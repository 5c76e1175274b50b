"""How float32 weights and activations become 8-bit integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_UINT8_ZERO = 128


@dataclass(frozen=True)
class Range:
    """The least and the greatest value that an activation was seen to have."""

    low: float
    high: float

    def scale_and_zero_point(self) -> tuple[np.float32, np.uint8]:
        """Of uint8 activations; zero is always a value of its own, since padding and masks are zeros."""
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        scale = np.float32(max(high - low, 1e-30) / 255)
        return scale, np.uint8(np.clip(np.rint(-low / scale), 0, 255))


# How activations become integers. "per-token": 8 bits, one scale for each token's vector, measured when it is
# computed. "two-part": the same, with 14 bits in two parts. "per-tensor": 8 bits, one measured scale for all tokens
# of a batch. "static": 8 bits, one scale fixed when the pack is built.
Activations = Literal["per-token", "two-part", "per-tensor", "static"]


@dataclass(frozen=True)
class Quantization:
    """What is quantised, and how.

    Signed weights with a scale for each column are the default: of the kernels measured they are the fastest and
    the least noisy. So are scales for each token, without which a sentence's result depends on its batch.
    """

    weights: Literal["int8", "uint8"] = "int8"
    per_channel: bool = True
    reduce_range: bool = False  # 7-bit weights
    excluded: tuple[str, ...] = ()  # shell-style patterns of layer names that stay float32
    activations: Activations = "per-token"
    activation_ranges: Mapping[str, Range] = field(default_factory=dict)  # by layer, for static activations

    def covers(self, layer: str) -> bool:
        return not any(fnmatchcase(layer, pattern) for pattern in self.excluded)

    @property
    def sums_fit_16_bits(self) -> bool:
        """Whether sums of two products do, as x86 without VNNI needs for its fast kernels to be exact."""
        return self.reduce_range or self.activations == "two-part"

    def describe(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return {
            "precision": "int8",
            "weights": self.weights,
            "per_channel": self.per_channel,
            "reduce_range": self.reduce_range,
            "excluded": list(self.excluded),
            "activations": self.activations,
            "sums_fit_16_bits": self.sums_fit_16_bits,
        }


@dataclass(frozen=True)
class QuantizedMatrix:
    """float32 [K, N] = (values - zero_points) * scales, one scale a column or one for all."""

    values: NDArray[Any]  # int8 or uint8 [K, N]
    scales: NDArray[np.float32]  # [N] or []
    zero_points: NDArray[Any]  # of the values' dtype, shaped as the scales

    def restored(self) -> NDArray[np.float32]:
        """[K, N]"""
        restored: NDArray[np.float32] = (self.values.astype(np.float32) - self.zero_points) * self.scales
        return restored


def quantize_matrix(matrix: NDArray[np.float32], quantization: Quantization) -> QuantizedMatrix:
    """Symmetric quantisation of a matrix [K, N] whose columns are the outputs of a product."""
    limit = 63 if quantization.reduce_range else 127
    highest = np.abs(matrix).max(0 if quantization.per_channel else None)  # [N] or []
    scales = (np.maximum(highest, np.finfo(np.float32).tiny * limit) / limit).astype(np.float32)
    values = np.rint(matrix / scales)
    if quantization.weights == "uint8":
        return QuantizedMatrix((values + _UINT8_ZERO).astype(np.uint8), scales, np.full(scales.shape, 128, np.uint8))
    return QuantizedMatrix(values.astype(np.int8), scales, np.zeros(scales.shape, np.int8))
