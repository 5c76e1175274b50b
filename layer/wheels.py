"""The wheels of the runtime layer: pinned by hash, fetched by pip for the processor that Lambda will have."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from layer.errors import LayerError

MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}  # Lambda's names of architectures -> the wheels'
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
FUNCTION_REQUIREMENTS = Path(__file__).parent.parent / "function" / "requirements.txt"

_HEADER = """\
# The runtime layer's wheels, one hash for each architecture. Written by `python -m layer lock` from
# ../function/requirements.txt.
"""


def install(architecture: str, target: Path) -> None:
    """Install the pinned wheels for the architecture into folder `target`.

    Raises:
        LayerError: pip could not; it has said why.
    """
    _pip("install", architecture, ["--require-hashes", "--requirement", str(REQUIREMENTS)], target)


def lock() -> None:
    """Pin what function/requirements.txt names to the hashes of its wheels for both architectures.

    Raises:
        LayerError: as `install`.
    """
    lines = FUNCTION_REQUIREMENTS.read_text("utf-8").splitlines()
    hashes: dict[str, list[str]] = {line: [] for line in lines if line and not line.startswith("#")}
    for architecture in MACHINES:
        for requirement, found in hashes.items():
            with tempfile.TemporaryDirectory() as folder:
                _pip("download", architecture, [requirement], Path(folder))
                found += [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in Path(folder).iterdir()]
    pins = (
        " \\\n    ".join([requirement, *(f"--hash=sha256:{digest}" for digest in found)])
        for requirement, found in hashes.items()
    )
    REQUIREMENTS.write_text(_HEADER + "\n".join(pins) + "\n", "utf-8")


def _pip(command: str, architecture: str, arguments: list[str], target: Path) -> None:
    destination = {
        "install": ["--target", str(target), "--no-compile", "--no-warn-conflicts"],
        "download": ["--dest", str(target)],
    }[command]
    # Amazon Linux 2023 has glibc 2.34: it runs wheels made for 2.28 and for the older 2.17 (manylinux2014).
    platforms = [f"--platform={tag}_{MACHINES[architecture]}" for tag in ("manylinux_2_28", "manylinux2014")]
    pip = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", "--no-deps"]
    target_python = ["--only-binary=:all:", "--python-version=3.13", "--implementation=cp", *platforms]
    done = subprocess.run([*pip, *target_python, *destination, *arguments], check=False)
    if done.returncode != 0:
        raise LayerError(
            f"pip could not fetch the wheels for {architecture}; it says why above. "
            f"If {sys.executable} has no pip, take a Python that has: make PYTHON=..."
        )
