"""Medians, quartiles, and ratios that are taken round by round."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """The middle of some samples and where the middle half of them lies."""

    median: float
    low: float  # first quartile
    high: float  # third quartile
    count: int

    def times(self, factor: float) -> Spread:
        return Spread(self.median * factor, self.low * factor, self.high * factor, self.count)


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles; of a single value, all three are that value.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no samples")
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], 1)
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high, len(values))


def ratios(numerators: Mapping[int, float], denominators: Mapping[int, float]) -> list[float]:
    """The ratio in each round that both were measured in: what slows a machine for a while slows both."""
    return [numerators[number] / denominators[number] for number in sorted(numerators) if number in denominators]
