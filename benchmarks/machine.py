"""The machine and the versions that figures belong to."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.processes import python_for

# What decides which int8 kernels a library has: AVX2 alone, or dot products of bytes (VNNI; on arm64 asimddp, i8mm).
FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm")

_OURS = ("numpy", "onnxruntime")
_PEERS = ("ctranslate2", "numpy", "onnxruntime", "optimum", "optimum-onnx", "sentencepiece", "torch", "transformers")
_PROGRAM = """
import importlib.metadata, json, sys
print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))
"""


@dataclass(frozen=True)
class Machine:
    processor: str
    flags: list[str]  # those of FLAGS that it has
    cores: int  # that this process may use
    memory_gb: float
    kernel: str
    python: str
    ours: dict[str, str]  # versions in the engine's environment
    peers: dict[str, str]  # versions in the peers' environment


def describe_machine() -> Machine:
    """Raises: BenchError, when the peers' environment is not there."""
    asked = [str(python_for("ctranslate2")), "-c", _PROGRAM, *_PEERS]
    peers = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
    cpu = _cpu_info()
    flags = (cpu.get("flags") or cpu.get("Features") or "").split()
    return Machine(
        processor=cpu.get("model name") or platform.processor() or platform.machine(),
        flags=[flag for flag in FLAGS if flag in flags],
        cores=len(os.sched_getaffinity(0)),
        memory_gb=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9,
        kernel=platform.release(),
        python=sys.version.split()[0],
        ours={name: version(name) for name in _OURS},
        peers=peers,
    )


def _cpu_info() -> dict[str, str]:
    """What is said of the first processor."""
    lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
