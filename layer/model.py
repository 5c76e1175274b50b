"""The model layer: a model pack, at /opt/model."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

from layer.archive import put_in_place, settle
from layer.errors import LayerError

FOLDER = "model"

_MANIFEST = "manifest.json"


def build_model(pack: Path, out: Path) -> None:
    """Build the layer in folder `out` from the pack: its manifest and the files that this names, nothing else.

    Raises:
        LayerError: `pack` is no whole model pack, or `out` holds something else than a model layer.
    """
    with tempfile.TemporaryDirectory() as workspace:
        folder = Path(workspace, FOLDER)
        folder.mkdir()
        for name, recorded in _files(pack).items():
            try:
                shutil.copyfile(pack / name, folder / name)
            except OSError as error:
                raise LayerError(f"{pack / name} is in the manifest but cannot be read: {error.strerror}.") from error
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != recorded["sha256"]:
                raise LayerError(f"{pack / name} is not the file that the manifest describes: build the pack again.")
        shutil.copyfile(pack / _MANIFEST, folder / _MANIFEST)
        settle(folder)
        put_in_place(folder, out)


def model_size(pack: Path) -> int:
    """Bytes of the layer that `build_model` would make of the pack.

    Raises:
        LayerError: `pack` is no model pack.
    """
    return sum((pack / name).stat().st_size for name in [*_files(pack), _MANIFEST])


def _files(pack: Path) -> dict[str, dict[str, str]]:
    try:
        files: dict[str, dict[str, str]] = json.loads((pack / _MANIFEST).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LayerError(
            f"{pack} is no model pack: run `make pack`, or set MARIAN_PACK to the absolute path of one."
        ) from error
    return files
