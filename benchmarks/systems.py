"""What is measured against what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.models import Models
from benchmarks.plan import OPUS, Row
from benchmarks.processes import Launch


@dataclass(frozen=True)
class Configuration:
    """What of CTranslate2 can be set to make it fast; a `max_batch_size` of 0 leaves the batch whole."""

    inter_threads: int
    intra_threads: int
    max_batch_size: int = 0

    def __str__(self) -> str:
        batches = f", max_batch_size={self.max_batch_size}" if self.max_batch_size else ""
        return f"inter_threads={self.inter_threads}, intra_threads={self.intra_threads}{batches}"


@dataclass(frozen=True)
class System:
    """One line of the tables.

    Attributes:
        name: as the report has it.
        backend: what loads it, as `worker.py` knows it.
        model: its folder's name, without the model that it is made from.
        checkpoint: the same, of the folder with its tokenizer's files.
        is_slow: whether it takes part in a few rounds only.
        is_tuned: whether the fastest configuration is looked for before each row.
        takes_part: in which rows.
    """

    name: str
    backend: str
    model: str
    checkpoint: str = "checkpoint"
    is_slow: bool = False
    is_tuned: bool = False
    takes_part: Callable[[Row], bool] = lambda _: True

    def launch(self, models: Models, model: str, threads: int, configuration: Configuration | None = None) -> Launch:
        folder, checkpoint = models.path(f"{model}-{self.model}"), models.path(f"{model}-{self.checkpoint}")
        if configuration:
            return Launch(self.backend, folder, checkpoint, configuration.intra_threads, configuration.inter_threads)
        return Launch(self.backend, folder, checkpoint, threads)


OURS = "ours INT8"
OURS_FP32 = "ours FP32"
TRANSFORMERS = "transformers FP32"
OPTIMUM_FP32 = "optimum FP32"
OPTIMUM = "optimum INT8"
LOOP = "three-file loop INT8"
CTRANSLATE2 = "CTranslate2 INT8, as it comes"
CTRANSLATE2_BEST = "CTranslate2 INT8, best"
CTRANSLATE2_SAME_ROWS = "CTranslate2 INT8, best, same rows"
CTRANSLATE2_COLD = "CTranslate2 INT8 + sentencepiece"

SYSTEMS = (
    System(OURS, "ours", "ours-int8"),
    System(OURS_FP32, "ours", "ours-fp32"),
    System(CTRANSLATE2_SAME_ROWS, "ctranslate2", "ctranslate2-int8-same-rows", "cut-checkpoint", is_tuned=True,
           takes_part=lambda row: row.model == OPUS),
    System(CTRANSLATE2_BEST, "ctranslate2", "ctranslate2-int8", is_tuned=True),
    System(CTRANSLATE2, "ctranslate2", "ctranslate2-int8"),
    System(LOOP, "loop", "optimum-int8"),
    System(OPTIMUM, "optimum", "optimum-int8", is_slow=True),
    System(OPTIMUM_FP32, "optimum", "optimum-fp32", is_slow=True),
    System(TRANSFORMERS, "transformers", "checkpoint", is_slow=True),
)  # fmt: skip


def configurations(row: Row) -> list[Configuration]:
    """Those of CTranslate2 that may be the fastest for the row."""
    half, quarter = row.batch // 2, row.batch // 4
    sizes = sorted({size for size in (half, quarter) if size}, reverse=True) if row.is_shareable else []
    if row.threads == 1:
        return [Configuration(1, 1), *(Configuration(1, 1, size) for size in sizes)]
    whole = [Configuration(1, row.threads)]
    if not sizes:
        return [*whole, Configuration(1, 1)]
    return [*whole, Configuration(1, row.threads, half), *(Configuration(row.threads, 1, size) for size in sizes)]
