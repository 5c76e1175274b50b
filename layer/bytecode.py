"""Bytecode shipped with the sources, so that the first import in Lambda need not compile: /opt cannot be written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from layer.errors import LayerError

CACHE_TAG = "cpython-313"  # of template.yaml's Runtime; another Python's bytecode would be passed over

# One process, files in order and a fixed hash seed: bytecode has sets in it, and marks what was met before.
# "Unchecked": Python takes it without a look at the source's time, which says nothing in a layer.
_PROGRAM = """
import pathlib, py_compile, sys
folder = pathlib.Path(sys.argv[1])
for path in sorted(folder.rglob("*.py")):
    py_compile.compile(
        str(path),
        dfile=f"/opt/{folder.name}/{path.relative_to(folder).as_posix()}",
        doraise=True,
        optimize=0,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
"""


def find_python() -> Path:
    """The interpreter that compiles: PYTHON313, this one, python3.13 on PATH, or pyenv's newest 3.13.

    Raises:
        LayerError: there is none.
    """
    if named := os.environ.get("PYTHON313"):
        if not _is_target(named):
            raise LayerError(f"PYTHON313 is {named}, which is no Python 3.13 that runs.")
        return Path(named)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    installed = sorted(pyenv.glob("3.13.*/bin/python3.13"), key=_version, reverse=True)
    for candidate in [sys.executable, shutil.which("python3.13"), *installed]:
        if candidate and _is_target(candidate):
            return Path(candidate)
    raise LayerError(
        "compiling the layer's sources needs a Python 3.13, Lambda's own, and none was found: install one, "
        "or set PYTHON313 to its path. BYTECODE=no (--no-bytecode) builds without; cold starts are then slower."
    )


def compile_sources(folder: Path, python: Path) -> None:
    """Compile every module below the folder, which Lambda will have as /opt/<its name>.

    Raises:
        LayerError: a module does not compile.
    """
    # -P and -S keep what is installed on this machine out; -I would ignore the hash seed too.
    command = [str(python), "-P", "-S", "-W", "ignore", "-c", _PROGRAM, str(folder)]
    done = subprocess.run(command, env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LayerError(f"{python} could not compile the layer's sources:\n{done.stderr}")


def _is_target(python: str | Path) -> bool:
    program = f"import sys; sys.exit(sys.implementation.cache_tag != {CACHE_TAG!r})"
    try:
        return subprocess.run([python, "-c", program], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _version(python: Path) -> list[int]:
    """Of an interpreter in pyenv's folder "3.13.2"."""
    return [int(number) for number in re.findall(r"\d+", python.parent.parent.name)]
