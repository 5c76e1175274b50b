"""INT8 packs on an x86 processor without VNNI, emulated by qemu-user.

Such processors add products of 8-bit integers in 16 bits, and saturate: without care, other translations
come out. The references are the same sentences on this machine's own processor.
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

SENTENCES = [row["en"] for row in held_out("test_tatoeba")[:6]]
QEMU = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")

PROGRAM = """
import json, sys
from function.engine import sessions
from function.engine.pack import ModelPack
from function.engine.translator import Translator
if sys.argv[2] == "careless":
    sessions.has_exact_int8_kernels = lambda: True
translator = Translator(ModelPack.open(sys.argv[1]), threads=1)
results = [translator.translate([text])[0] for text in json.loads(sys.argv[3])]
print(json.dumps({"exact": sessions.has_exact_int8_kernels(), "results": [[r.text, r.score] for r in results]}))
"""


def translate(pack: Path, emulator: list[str], mode: str = "careful") -> dict[str, Any]:
    # A BLAS kernel chosen for the real processor would not run on the emulated one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    command = [*emulator, sys.executable, "-c", PROGRAM, str(pack), mode, json.dumps(SENTENCES)]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    output: dict[str, Any] = json.loads(done.stdout)
    return output


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the processor is no x86_64")
@pytest.mark.skipif(QEMU is None, reason="qemu-user is not installed")
def test_translations_and_scores_equal_those_of_a_processor_with_vnni(int8_pack: Path) -> None:
    haswell = [str(QEMU), "-cpu", "Haswell"]
    native = translate(int8_pack, [])
    if not native["exact"]:
        pytest.skip("this machine's own processor has no VNNI to compare with")

    emulated = translate(int8_pack, haswell)

    assert not emulated["exact"]
    assert emulated["results"] == native["results"]
    # The hazard is real: without the exact kernels, the very same pack computes something else.
    assert translate(int8_pack, haswell, "careless")["results"] != native["results"]
