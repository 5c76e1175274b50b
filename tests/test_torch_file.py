"""Reading pytorch_model.bin without torch, and without running what is in it."""

from __future__ import annotations

import collections
import os
import pickle
import struct
import sys
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from tests.checkpoints import assert_refused, build, weights_of
from tests.paths import ROOT


class Tensor:
    """Pickles as torch pickles a tensor."""

    def __init__(self, key: str, array: Any) -> None:
        self.key, self.array = key, array

    def __reduce__(self) -> tuple[Any, ...]:
        strides = tuple(step // self.array.itemsize for step in self.array.strides)
        arguments: tuple[Any, ...] = (
            Storage(self.key, self.array.size),
            0,
            self.array.shape,
            strides,
            False,
            collections.OrderedDict(),
        )
        return sys.modules["torch._utils"]._rebuild_tensor_v2, arguments


class Storage:
    def __init__(self, key: str, count: int) -> None:
        self.key, self.count = key, count


class TorchPickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, Storage):
            return ("storage", sys.modules["torch"].FloatStorage, value.key, "cpu", value.count, *self.view)
        return None

    view: tuple[Any, ...] = ()


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Just the names that torch's pickles refer to: torch itself is not installed where these tests run."""

    def _rebuild_tensor_v2() -> None: ...

    class FloatStorage: ...

    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    FloatStorage.__module__, FloatStorage.__qualname__ = "torch", "FloatStorage"
    torch.FloatStorage, torch._utils = FloatStorage, utils  # type: ignore[attr-defined]
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)


def write_torch_zip(path: Path, weights: dict[str, Any]) -> None:
    tensors = {name: Tensor(str(key), array) for key, (name, array) in enumerate(weights.items())}
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("archive/data.pkl", "w") as file:
            TorchPickler(file, protocol=2).dump(collections.OrderedDict(tensors))
        for tensor in tensors.values():
            archive.writestr(f"archive/data/{tensor.key}", tensor.array.tobytes())


def write_torch_legacy(path: Path, weights: dict[str, Any]) -> None:
    tensors = {name: Tensor(str(key), array) for key, (name, array) in enumerate(weights.items())}
    with path.open("wb") as file:
        for header in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}):
            pickle.dump(header, file, protocol=2)
        pickler = TorchPickler(file, protocol=2)
        pickler.view = (None,)
        pickler.dump(collections.OrderedDict(tensors))
        pickle.dump([tensor.key for tensor in tensors.values()], file, protocol=2)
        for tensor in tensors.values():
            file.write(struct.pack("<q", tensor.array.size) + tensor.array.tobytes())


@pytest.mark.parametrize("write", [write_torch_zip, write_torch_legacy])
@pytest.mark.usefixtures("fake_torch")
def test_pytorch_model_bin_gives_the_same_pack(
    checkpoint: Path, tmp_path: Path, write: Callable[[Path, dict[str, Any]], None]
) -> None:
    build(checkpoint, tmp_path / "from_safetensors")
    write(checkpoint / "pytorch_model.bin", load_file(checkpoint / "model.safetensors"))
    (checkpoint / "model.safetensors").unlink()

    done = build(checkpoint, tmp_path / "from_torch")

    assert done.returncode == 0, done.stderr
    assert weights_of(tmp_path / "from_torch") == weights_of(tmp_path / "from_safetensors")


class Malicious:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("owned",)


def test_a_pickle_that_would_run_code_is_refused_unrun(checkpoint: Path, tmp_path: Path) -> None:
    (checkpoint / "model.safetensors").unlink()
    with zipfile.ZipFile(checkpoint / "pytorch_model.bin", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"a": Malicious()}))

    assert_refused(build(checkpoint, tmp_path / "pack"), "posix.mkdir, which no state dict needs", tmp_path)
    assert not (ROOT / "owned").exists()


@pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps([1]), b"PK\x05\x06" + bytes(18)])
def test_a_damaged_pytorch_model_bin(checkpoint: Path, tmp_path: Path, content: bytes) -> None:
    (checkpoint / "model.safetensors").unlink()
    (checkpoint / "pytorch_model.bin").write_bytes(content)

    assert_refused(build(checkpoint, tmp_path / "pack"), "cannot be read as a torch state dict", tmp_path)
