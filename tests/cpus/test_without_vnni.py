"""INT8 packs on an x86 processor without VNNI, emulated by qemu-user, beside this machine's own processor.

Such processors add products of 8-bit integers in 16 bits, and saturate where weights were not made for it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT, held_out

SENTENCES = [row["en"] for row in held_out("test_tatoeba")[:12]]
QEMU = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")
HASWELL = [str(QEMU), "-cpu", "Haswell"]

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the processor is no x86_64"),
    pytest.mark.skipif(QEMU is None, reason="qemu-user is not installed"),
]

TRANSLATE = """
import json, sys
from function.engine.pack import ModelPack
from function.engine.model import Model
model = Model(ModelPack.open(sys.argv[1]), threads=1)
drafts = [model.decode([text])[0] for text in json.loads(sys.argv[2])]
print(json.dumps([[draft.text, draft.log_probability] for draft in drafts]))
"""

# The greatest activations against a matrix of large weights, as it is quantised and as plain rounding would have it.
MULTIPLY = """
import json
import numpy as np, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from model_pack.quantization import Quantization, quantize_matrix
matrix = np.abs(np.random.default_rng(0).standard_normal((64, 48))).astype(np.float32) + 1
fitted = quantize_matrix(matrix, Quantization()).values
plain = quantize_matrix(matrix, Quantization(), is_multiplied=False).values
x = np.full((3, 64), 255, np.uint8)
def product(weights):
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "weights"], ["y"])], "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, (3, 48))],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]
is_exact = lambda weights: bool((product(weights) == x.astype(int) @ weights.astype(int)).all())
print(json.dumps({"fitted": is_exact(fitted), "plain": is_exact(plain)}))
"""


def run(program: str, *arguments: str, emulator: list[str]) -> Any:
    # A BLAS kernel chosen for the real processor would not run on the emulated one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    command = [*emulator, sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def test_translations_are_this_processors(int8_pack: Path) -> None:
    arguments = str(int8_pack), json.dumps(SENTENCES)

    emulated, native = (run(TRANSLATE, *arguments, emulator=emulator) for emulator in (HASWELL, []))

    for (text, log_probability), (other, its_log_probability) in zip(emulated, native, strict=True):
        assert text == other
        assert log_probability == pytest.approx(its_log_probability, abs=1e-3)  # a logarithm's last bit may differ


def test_sums_are_exact_with_the_greatest_activations() -> None:
    # The hazard is real: weights that are merely rounded give other sums.
    assert run(MULTIPLY, emulator=HASWELL) == {"fitted": True, "plain": False}
    assert run(MULTIPLY, emulator=[])["fitted"]
