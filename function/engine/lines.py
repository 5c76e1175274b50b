"""A text file of many lines, of which few are ever asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

_LINE_FEED = ord("\n")


class Lines:
    """The lines of a UTF-8 file as a sequence, each decoded when it is asked for.

    A list of 65,000 pieces takes some 5 MB and ms more.
    """

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        ends = np.flatnonzero(np.frombuffer(self._data, np.uint8) == _LINE_FEED)
        self._ends = memoryview(ends.astype(np.uint32).tobytes()).cast("I")

    def __len__(self) -> int:
        return len(self._ends) + 1

    def __getitem__(self, index: int) -> str:
        start = self._ends[index - 1] + 1 if index else 0
        end = self._ends[index] if index < len(self._ends) else None
        return self._data[start:end].decode("utf-8")

    def head(self, count: int) -> list[str]:
        """The first `count` lines."""
        end = self._ends[count - 1] if count < len(self) else None
        return self._data[:end].decode("utf-8").split("\n")
