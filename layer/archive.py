"""Folders and zips that depend on their content alone: no clock, no umask, no order of a directory."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import zipfile
from pathlib import Path

from layer.errors import LayerError

_OLDEST = 315_532_800  # 1980-01-01, where zip's calendar begins
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755


def files_in(folder: Path) -> list[Path]:
    """Every file below the folder, in one order on every machine."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(files, key=lambda path: path.relative_to(folder).as_posix())


def size_of(folder: Path) -> int:
    """Bytes of all files below the folder: what Lambda counts."""
    return sum(path.stat().st_size for path in files_in(folder))


def settle(folder: Path) -> None:
    """Give everything in the folder fixed modes and the time SOURCE_DATE_EPOCH, or else 1980-01-01."""
    moment = _moment()
    for path in [*folder.rglob("*"), folder]:
        path.chmod(_FOLDER_MODE if path.is_dir() else _FILE_MODE)
        os.utime(path, (moment, moment))


def put_in_place(built: Path, out: Path) -> None:
    """Move the folder that was built into the layer folder `out`, where it replaces one of the same name.

    Raises:
        LayerError: `out` holds other things too; they would end in the layer.
    """
    strangers = sorted(path.name for path in out.iterdir() if path.name != built.name) if out.is_dir() else []
    if strangers:
        raise LayerError(f"{out} holds {strangers[0]}, which is no part of the layer; choose another --out.")
    out.mkdir(parents=True, exist_ok=True)
    target = out / built.name
    if target.exists():
        shutil.rmtree(target)
    shutil.move(built, target)


def write_zip(folder: Path, path: Path) -> str:
    """Pack a settled folder; returns the zip's sha256."""
    date = time.gmtime(_moment())[:6]
    path.unlink(missing_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files_in(folder):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, which has modes
            entry.external_attr = (0o100000 | _FILE_MODE) << 16
            archive.writestr(entry, file.read_bytes())
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _moment() -> int:
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if text and not text.isdecimal():
        raise LayerError(f"SOURCE_DATE_EPOCH must be a whole number of seconds, it is {text!r}.")
    return max(_OLDEST, int(text or 0))
