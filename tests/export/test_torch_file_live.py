"""pytorch_model.bin as torch itself writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from model_pack.torch_file import load_torch_file
from tests.paths import STARTER


@pytest.mark.parametrize("zipped", [True, False])
def test_tensors_equal_those_that_torch_saved(tmp_path: Path, zipped: bool) -> None:
    state = {name: torch.from_numpy(array) for name, array in load_file(STARTER / "model.safetensors").items()}
    state["transposed"] = torch.arange(12.0).reshape(3, 4).T
    state["slice"] = torch.arange(12, dtype=torch.float64)[3:9:2]
    state["shared"] = state["slice"]
    state["parameter"] = torch.nn.Parameter(torch.arange(3.0))
    state["scalar"] = torch.tensor(7)
    state["bfloat16"] = torch.arange(5.0).to(torch.bfloat16)
    state["empty"] = torch.zeros(0, 4)
    torch.save(state, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)

    loaded = load_torch_file(tmp_path / "pytorch_model.bin")

    assert loaded.keys() == state.keys()
    for name, tensor in state.items():
        assert loaded[name].dtype.name == str(tensor.dtype).removeprefix("torch.")
        expected = tensor.detach().double().numpy()
        np.testing.assert_array_equal(loaded[name].astype(np.float64), expected)
