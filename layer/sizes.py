"""What a function and its layers weigh in Lambda, part by part."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layer import runtime
from layer.archive import size_of
from layer.errors import LayerError
from layer.model import model_size

MEGABYTE = 1 << 20  # AWS's: its limit of 250 MB is 262,144,000 bytes
LIMIT = 250 * MEGABYTE  # function and layers, unzipped
GOAL = 170 * MEGABYTE

_FUNCTION = Path(__file__).parent.parent / "function"


@dataclass(frozen=True)
class Sizes:
    """Bytes, unzipped, of what Lambda unpacks for one function."""

    architecture: str
    function: int
    runtime: int
    model: int

    @property
    def total(self) -> int:
        return self.function + self.runtime + self.model


def measure(architecture: str, runtime_layer: Path, pack: Path) -> Sizes:
    """Raises: LayerError: the layer or the pack is not there, or the function's code cannot be built."""
    if not (runtime_layer / runtime.FOLDER).is_dir():
        raise LayerError(f"{runtime_layer} is no runtime layer: `make sizes` builds it first.")
    return Sizes(architecture, _function_size(), size_of(runtime_layer), model_size(pack))


def table(columns: Sequence[Sizes]) -> str:
    """The sizes as text, one column for each architecture, with the limit and the goal beside the totals."""
    rows = {
        "bytes, unzipped": [sizes.architecture for sizes in columns],
        "function code": [f"{sizes.function:,}" for sizes in columns],
        "runtime layer": [f"{sizes.runtime:,}" for sizes in columns],
        "model layer": [f"{sizes.model:,}" for sizes in columns],
        "total": [f"{sizes.total:,}" for sizes in columns],
        "total in MB": [f"{sizes.total / MEGABYTE:.1f}" for sizes in columns],
        f"Lambda's limit, {LIMIT // MEGABYTE} MB": ["kept" if sizes.total <= LIMIT else "BROKEN" for sizes in columns],
        f"goal, {GOAL // MEGABYTE} MB": ["met" if sizes.total <= GOAL else "missed" for sizes in columns],
    }
    lines = [f"{name:24}" + "".join(f"{cell:>14}" for cell in cells) for name, cells in rows.items()]
    return "\n".join([*lines, f"(MB as AWS counts them, {MEGABYTE:,} bytes each)"])


def _function_size() -> int:
    """Bytes of the largest function's code, as `sam build` would build it."""
    rules = set(re.findall(r"\bbuild-\w+", (_FUNCTION / "Makefile").read_text("utf-8")))
    return max(map(_built_size, sorted(rules)))


def _built_size(rule: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = ["make", "--silent", "-C", str(_FUNCTION), rule, f"ARTIFACTS_DIR={folder}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LayerError(f"function/Makefile cannot {rule}:\n{done.stderr}")
        return size_of(Path(folder))
