"""Reads `pytorch_model.bin` without torch, and without running what is in it.

Both layouts that torch.save has used: the zip archive (torch >= 1.6) and the older stream of pickles.
The pickle in either may name only tensors, storages and OrderedDict; anything else is refused.
"""

from __future__ import annotations

import collections
import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from model_pack.errors import ModelPackError

_STORAGE_DTYPES = {
    "FloatStorage": np.dtype("<f4"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "DoubleStorage": np.dtype("<f8"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001

Array = NDArray[Any]


def load_torch_file(path: Path) -> dict[str, Array]:
    """The state dict in a file that torch.save wrote.

    Raises:
        ModelPackError: not such a file, damaged, not a state dict, or one that names other code.
    """
    try:
        if zipfile.is_zipfile(path):
            state = _load_zip(path)
        else:
            with path.open("rb") as file:
                state = _load_legacy(file)
    except (pickle.UnpicklingError, zipfile.BadZipFile, EOFError, ValueError, LookupError, TypeError, OSError) as error:
        raise ModelPackError(f"{path} cannot be read as a torch state dict: {error}") from error
    if not isinstance(state, dict) or not all(isinstance(tensor, np.ndarray) for tensor in state.values()):
        raise ModelPackError(f"{path} does not hold a state dict of tensors.")
    return state


def _load_zip(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError("the archive holds no data.pkl")
        root = pickles[0].removesuffix("data.pkl")

        def storage(dtype: np.dtype[Any], key: str, count: int) -> Array:
            return np.frombuffer(archive.read(f"{root}data/{key}"), dtype, count)

        return _Unpickler(io.BytesIO(archive.read(pickles[0])), storage).load()


def _load_legacy(file: BinaryIO) -> Any:
    """Magic number, protocol, system facts, the pickle, the storage keys, then each storage's bytes."""
    storages: dict[str, Array] = {}

    def storage(dtype: np.dtype[Any], key: str, count: int) -> Array:
        return storages.setdefault(key, np.empty(count, dtype))

    header = [_Unpickler(file, storage).load() for _ in range(3)]
    if header[:2] != [_LEGACY_MAGIC, _LEGACY_PROTOCOL]:
        raise ValueError("it starts with neither a zip archive nor torch's magic number")
    state = _Unpickler(file, storage).load()
    for key in _Unpickler(file, storage).load():
        (count,) = np.frombuffer(file.read(8), "<i8")
        array = storages[key]
        content = file.read(int(count) * array.itemsize)
        array[:] = np.frombuffer(content, array.dtype)
    return state


class _Unpickler(pickle.Unpickler):
    """Knows tensors and storages; every other name is an error, so nothing in the file can run."""

    def __init__(self, file: Any, storage: Callable[[np.dtype[Any], str, int], Array]) -> None:
        super().__init__(file)
        self._storage = storage

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *_: tensor
        if module == "torch" and name in _STORAGE_DTYPES:
            return _STORAGE_DTYPES[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}, which no state dict needs; the file was not run")

    def persistent_load(self, reference: Any) -> Array:
        kind, dtype, key, _location, count, *_view = reference
        if kind != "storage":
            raise pickle.UnpicklingError(f"it refers to a {kind!r}")
        return self._storage(dtype, key, count)


def _rebuild_tensor(storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Array:
    """A view into a storage: offset and strides count elements."""
    if size and offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) >= storage.size:
        raise ValueError("a tensor reaches beyond its storage")
    strides = tuple(step * storage.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(storage[offset:], size, strides, writeable=False)
