"""What a decoder step makes of its target ids, in the parts that it computes them in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Logits:
    """One step's logits.

    Attributes:
        parts: [B rows, target ids] float32 each, of neighbouring ids; all but the last have the same number of them.
        log_sums: of each row and part, the logarithm of the sum of its logits' exponentials [B, parts]
    """

    parts: list[NDArray[np.float32]]
    log_sums: NDArray[np.float32]

    @property
    def rows(self) -> int:
        return len(self.log_sums)

    def forbid(self, target_ids: Iterable[int], rows: int | slice = slice(None)) -> None:
        """Overwrite logits: these ids are not the best any more."""
        for token_id in target_ids:
            number, column = self._place(token_id)
            self.parts[number][rows, column] = -np.inf

    def best(self) -> list[int]:
        """Of each row, the id with the greatest logit; the lowest where there are several."""
        columns: list[list[int]] = [part.argmax(-1).tolist() for part in self.parts]
        if len(columns) == 1:
            return columns[0]
        numbers, size = range(len(self.parts)), self.parts[0].shape[1]
        best = []
        for row in range(self.rows):
            number = max(numbers, key=lambda number: self.parts[number].item(row, columns[number][row]))
            best.append(number * size + columns[number][row])
        return best

    def log_probability(self, row: int, token_id: int) -> float:
        """Natural, of an id among all, those included that `forbid` was told of."""
        number, column = self._place(token_id)
        log_sums: list[float] = self.log_sums[row].tolist()
        greatest = max(log_sums)
        log_sum = greatest + log(sum([exp(of_part - greatest) for of_part in log_sums]))
        return self.parts[number].item(row, column) - log_sum

    def _place(self, token_id: int) -> tuple[int, int]:
        """The part that an id is in, and its column there."""
        size = self.parts[0].shape[1]
        return token_id // size, token_id % size
