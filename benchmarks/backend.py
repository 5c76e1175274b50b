"""What a worker process holds: a loaded system that does pieces of work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.work import Output, Work

Job = Callable[[], Output]


@dataclass(frozen=True)
class Options:
    """How a system is loaded.

    Attributes:
        model: the folder that holds it in the system's own format.
        checkpoint: the folder with its spm files and vocabulary.
        threads: for one matrix product.
        inter_threads: CTranslate2's batches side by side.
    """

    model: Path
    checkpoint: Path
    threads: int
    inter_threads: int = 1


class Backend(Protocol):
    """A loaded system."""

    def job(self, work: Work) -> Job:
        """What does the work once when it is called; all that need not be timed is done before it is returned.

        Raises:
            NotImplementedError: the system does not do this kind of work.
        """
