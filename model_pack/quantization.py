"""How float32 weights and activations become 8-bit integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_UINT8_ZERO = 128

# x86 without VNNI (AVX2, AVX-512BW) multiplies bytes with an instruction that adds two neighbouring products in 16
# bits and saturates (VPMADDUBSW in Intel's Software Developer's Manual). With weights whose sum in two neighbouring
# rows is at most this it cannot: 255 * 128 < 32768. So fast kernels are exact on every processor.
_MAX_PAIR = 128
_SHRINKAGES = (
    1.0,
    0.9,
    0.85,
    0.8,
    0.75,
    0.7,
    0.65,
    0.6,
)  # of the integers' range, tried for the least error under that limit
_COLUMNS_AT_ONCE = 4096  # bounds the memory of trying


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

    def packs(self, layer: str) -> bool:
        """Whether the integers of a layer can share words: signed bytes, eight to one."""
        return self.covers(layer) and self.weights == "int8"

    def describe(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return {
            "precision": "int8",
            "weights": self.weights,
            "per_channel": self.per_channel,
            "reduce_range": self.reduce_range,
            "excluded": list(self.excluded),
            "activations": self.activations,
        }


@dataclass(frozen=True)
class QuantizedMatrix:
    """float32 [K, N] = (values - zero_points) * scales, one scale a column or one for all."""

    values: NDArray[Any]  # int8 or uint8 [K, N]
    scales: NDArray[np.float32]  # [N] or []
    zero_points: NDArray[Any]  # of the values' dtype, shaped as the scales

    def columns(self, chosen: slice) -> QuantizedMatrix:
        """Some of them."""
        if not self.scales.ndim:
            return QuantizedMatrix(self.values[:, chosen], self.scales, self.zero_points)
        return QuantizedMatrix(self.values[:, chosen], self.scales[chosen], self.zero_points[chosen])

    def restored(self) -> NDArray[np.float32]:
        """[K, N]"""
        restored: NDArray[np.float32] = (self.values.astype(np.float32) - self.zero_points) * self.scales
        return restored


def quantize_matrix(
    matrix: NDArray[np.float32], quantization: Quantization, *, is_multiplied: bool = True
) -> QuantizedMatrix:
    """Symmetric quantisation of a matrix [K, N] whose columns are the outputs of a product.

    Args:
        is_multiplied: False for a table that is only looked up, whose neighbouring rows never meet.
    """
    # Each of the two parts of an activation has 7 bits, and 7-bit weights fit, too.
    fits = not is_multiplied or quantization.activations == "two-part" or quantization.reduce_range
    highest = np.abs(matrix).max(0 if quantization.per_channel else None)  # [N] or []
    limit = 63 if quantization.reduce_range else 127
    scales = (np.maximum(highest, np.finfo(np.float32).tiny * limit) / limit).astype(np.float32)
    values, scales = (np.rint(matrix / scales), scales) if fits else _least_error(matrix, scales)
    if quantization.weights == "uint8":
        return QuantizedMatrix((values + _UINT8_ZERO).astype(np.uint8), scales, np.full(scales.shape, 128, np.uint8))
    return QuantizedMatrix(values.astype(np.int8), scales, np.zeros(scales.shape, np.int8))


def _least_error(
    matrix: NDArray[np.float32], scales: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Integers [K, N] of which no pair exceeds _MAX_PAIR, and their scales: as given, or larger if that errs less."""
    if scales.ndim and matrix.shape[1] > _COLUMNS_AT_ONCE:
        starts = range(0, matrix.shape[1], _COLUMNS_AT_ONCE)
        parts = [slice(start, start + _COLUMNS_AT_ONCE) for start in starts]
        found = [_least_error(matrix[:, part], scales[part]) for part in parts]
        return np.concatenate([values for values, _ in found], 1), np.concatenate([scales for _, scales in found])

    best_values, best_scales = matrix, scales
    least: NDArray[np.float32] = np.full(scales.shape, np.inf, np.float32)
    for shrinkage in _SHRINKAGES:
        tried = (scales / np.float32(shrinkage)).astype(np.float32)
        values = _limit_pairs(np.rint(matrix / tried))
        error = np.square(values * tried - matrix).sum(0 if scales.ndim else None)
        is_better = error < least
        least = np.where(is_better, error, least)
        best_values, best_scales = np.where(is_better, values, best_values), np.where(is_better, tried, best_scales)
    return best_values, best_scales


def _limit_pairs(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Take from neighbouring rows of one sign, half from each, what exceeds _MAX_PAIR together."""
    first, second = values[0::2], values[1::2]
    first = first[: len(second)]  # an odd last row has no neighbour
    excess = np.where(first * second > 0, np.maximum(np.abs(first + second) - _MAX_PAIR, 0), 0)
    sign = np.sign(first)
    limited = values.copy()
    limited[0 : 2 * len(second) : 2] -= sign * np.ceil(excess / 2)
    limited[1::2] -= sign * np.floor(excess / 2)
    return limited
