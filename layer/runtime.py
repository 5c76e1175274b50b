"""The runtime layer: numpy, onnxruntime and sentencex, less what translating never touches."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from layer import wheels
from layer.archive import files_in, put_in_place, settle, size_of
from layer.bytecode import compile_sources

FOLDER = "python"  # in the layer: Lambda has /opt/python on its path


@dataclass(frozen=True)
class Removal:
    """Files that the layer does without. `*` in a pattern stands for slashes too."""

    what: str
    patterns: tuple[str, ...]

    def takes(self, name: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in self.patterns)


REMOVALS = (
    Removal(
        "onnxruntime's tools for making models",
        tuple(f"onnxruntime/{name}/*" for name in ("backend", "datasets", "quantization", "tools", "transformers")),
    ),
    # The Python module has the whole of it linked in.
    Removal("onnxruntime's library for C", ("onnxruntime/capi/libonnxruntime.so*",)),
    Removal(
        "tests, and modules only tests load",
        ("*/tests/*", "numpy/_core/*_tests.*.so", "numpy/_core/_simd.*.so", "numpy/conftest.py"),
    ),
    Removal(
        "what compilers, type checkers and installers read",
        (
            *("*.a", "*.c", "*.h", "*.pxd", "*.pyi", "*.pyx", "*/py.typed"),
            *("numpy/_configtool.py", "numpy/_core/include/*", "numpy/_core/lib/*", "numpy/_pyinstaller/*"),
            "numpy/random/_examples/*",
        ),
    ),
    Removal("numpy's Fortran compiler, f2py, and its help pages", ("numpy/f2py/*", "numpy/doc/*")),
    Removal(
        "commands, and pip's own notes: the layer has no pip to read them",
        ("bin/*", *(f"*.dist-info/{name}" for name in ("INSTALLER", "RECORD", "REQUESTED", "entry_points.txt"))),
    ),
)


def build_runtime(architecture: str, out: Path, python: Path | None, say: Callable[[str], None]) -> None:
    """Build the layer in folder `out`, replacing the one that stands there.

    Args:
        architecture: Lambda's name of it, x86_64 or arm64.
        python: the Python 3.13 that compiles the sources; None leaves that to every cold start.
        say: called with a line about each stage.

    Raises:
        LayerError: the wheels cannot be fetched or compiled, or `out` holds something else.
    """
    with tempfile.TemporaryDirectory() as workspace:
        folder = Path(workspace, FOLDER)
        say(f"Installing the wheels for {architecture}")
        wheels.install(architecture, folder)
        for removal in REMOVALS:
            say(f"  less {_remove(folder, removal) / 1e6:4.1f} MB: {removal.what}")
        _remove_empty_folders(folder)
        if python:
            say(f"Compiling the sources with {python}")
            compile_sources(folder, python)
        settle(folder)
        say(f"Built the runtime layer for {architecture}: {size_of(folder) / 1e6:.1f} MB")
        put_in_place(folder, out)


def _remove(folder: Path, removal: Removal) -> int:
    """Returns the bytes it saved."""
    files = [file for file in files_in(folder) if removal.takes(file.relative_to(folder).as_posix())]
    size = sum(file.stat().st_size for file in files)
    for file in files:
        file.unlink()
    return size


def _remove_empty_folders(folder: Path) -> None:
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()
