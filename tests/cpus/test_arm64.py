"""The arm64 runtime layer on an arm64 processor, emulated by qemu-user, beside this machine's own processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from layer.bytecode import find_python
from layer.errors import LayerError
from layer.runtime import build_runtime
from tests.cpus.arm64_root import Unavailable, emulated_python
from tests.paths import ROOT, held_out

SENTENCES = [row["en"] for row in held_out("test_tatoeba")[:40]]

PROGRAM = """
import json, platform, sys
import numpy, onnxruntime
from function.engine.pack import ModelPack
from function.engine.tokenizer import Tokenizer
from function.engine.model import Model
token_ids = []
decode = Tokenizer.decode
def noted(self, ids):
    token_ids.append([int(id_) for id_ in ids])
    return decode(self, ids)
Tokenizer.decode = noted
model = Model(ModelPack.open(sys.argv[1]), threads=1)
drafts = [model.decode([text])[0] for text in json.loads(sys.argv[2])]
print(json.dumps({
    "machine": platform.machine(),
    "files": [module.__file__ for module in (numpy, onnxruntime)],
    "token_ids": token_ids,
    "scores": [draft.log_probability / draft.target_tokens for draft in drafts],
}))
"""


@pytest.fixture(scope="module")
def python() -> list[str]:
    try:
        return emulated_python(ROOT / "build" / "arm64-root")
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def runtime_layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layers") / "runtime-arm64"
    try:
        compiler = find_python()
    except LayerError:
        compiler = None
    build_runtime("arm64", folder, compiler, say=lambda _: None)
    return folder / "python"


def translate(python: list[str], path: list[Path], pack: Path) -> dict[str, Any]:
    # A BLAS kernel chosen for the real processor would not run on the emulated one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    command = [*python, "-c", PROGRAM, str(pack), json.dumps(SENTENCES)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert not done.stderr
    output: dict[str, Any] = json.loads(done.stdout)
    return output


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_layer_translates_as_this_machine_does(
    python: list[str], runtime_layer: Path, request: pytest.FixtureRequest, precision: str
) -> None:
    pack = request.getfixturevalue(f"{precision}_pack")
    native = translate([sys.executable], [ROOT], pack)

    # Without site-packages: the layer, the standard library and the function are all there is.
    emulated = translate([*python, "-S", "-s", "-P", "-B"], [runtime_layer, ROOT], pack)

    assert emulated["machine"] == "aarch64"
    assert all(Path(file).is_relative_to(runtime_layer) for file in emulated["files"])
    assert emulated["token_ids"] == native["token_ids"]
    assert emulated["scores"] == pytest.approx(native["scores"], abs=1e-4)  # a logarithm's last bit may differ
