"""The layers: the same bytes every time, nothing that is not needed, and enough to translate with."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from layer import __main__ as command_line
from layer import sizes, wheels
from layer.archive import files_in, settle, size_of, write_zip
from layer.bytecode import find_python
from layer.errors import LayerError
from layer.model import build_model
from layer.runtime import REMOVALS, build_runtime
from tests.events import http_api_event
from tests.paths import ROOT

ARCHITECTURE = "arm64" if platform.machine() == "aarch64" else "x86_64"
EVENT = http_api_event("POST", "/translate", {"q": "Good morning.", "source": "en", "target": "zh"})

# Notes what Python compiles, then translates. The handler loads both packages.
TRANSLATE = """
import json, sys
from importlib.machinery import SourceFileLoader
compiled = []
source_to_code = SourceFileLoader.source_to_code
def noted(self, data, path, **options):
    compiled.append(path)
    return source_to_code(self, data, path, **options)
SourceFileLoader.source_to_code = noted
from function.http_handler import handler
response = handler(json.loads(sys.argv[1]), None)
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print(json.dumps({"response": response, "files": [file for file in files if file], "compiled": compiled}))
"""

IMPORT_ALL = """
import importlib, json, pkgutil, warnings
warnings.simplefilter("ignore")
failed = {}
for name in ("numpy", "onnxruntime", "sentencex"):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        try:
            importlib.import_module(module.name)
        except Exception as error:
            failed[module.name] = str(error)
print(json.dumps(failed))
"""


@pytest.fixture(scope="module")
def compiler() -> Path | None:
    try:
        return find_python()
    except LayerError:
        return None


@pytest.fixture(scope="module")
def python(compiler: Path | None) -> Path:
    if compiler is None:
        pytest.skip("no Python 3.13 was found")
    return compiler


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What building the layer said, once `runtime_layer` is built."""
    return []


@pytest.fixture(scope="module")
def runtime_layer(tmp_path_factory: pytest.TempPathFactory, compiler: Path | None, said: list[str]) -> Path:
    folder = tmp_path_factory.mktemp("layers") / "runtime"
    build_runtime(ARCHITECTURE, folder, compiler, said.append)
    return folder


def run(python: Path, layer: Path, program: str, *arguments: str, **environment: str) -> Any:
    """What the program prints on a Python that has the layer, the function and the standard library, nothing more."""
    path = os.pathsep.join([str(layer / "python"), str(ROOT)])
    done = subprocess.run(
        [python, "-S", "-s", "-P", "-B", "-c", program, *arguments],
        env={"PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    return json.loads(done.stdout)


def make(rule: str, out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--silent", "-C", str(ROOT / "layer"), rule, f"ARTIFACTS_DIR={out}"]
    environment = {**os.environ, "PYTHON": sys.executable, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def facts(folder: Path) -> dict[str, tuple[str, int, float]]:
    return {
        file.relative_to(folder).as_posix(): (
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mode,
            file.stat().st_mtime,
        )
        for file in files_in(folder)
    }


def test_the_wheels_are_the_functions_with_a_hash_for_each_architecture() -> None:
    pattern = r"^(\S+==\S+) \\\n    --hash=sha256:[0-9a-f]{64} \\\n    --hash=sha256:[0-9a-f]{64}$"
    pins = re.findall(pattern, wheels.REQUIREMENTS.read_text("utf-8"), re.MULTILINE)
    needed = [line for line in wheels.FUNCTION_REQUIREMENTS.read_text("utf-8").splitlines() if line[:1] != "#"]

    assert pins == needed, "run `python -m layer lock`"


def test_the_runtime_layer_has_the_same_bytes_when_sam_builds_it(
    runtime_layer: Path, compiler: Path | None, tmp_path: Path
) -> None:
    options = {"ARCHITECTURE": ARCHITECTURE, "BYTECODE": "yes" if compiler else "no"}

    done = make("build-RuntimeLayer", tmp_path / "again", **options)

    assert done.returncode == 0, done.stderr
    assert facts(runtime_layer) == facts(tmp_path / "again")
    digests = [write_zip(folder, tmp_path / f"{folder.name}.zip") for folder in (runtime_layer, tmp_path / "again")]
    assert digests[0] == digests[1]


def test_the_runtime_layer_holds_three_packages_with_their_licences(runtime_layer: Path) -> None:
    names = {path.name for path in (runtime_layer / "python").iterdir()}
    files = set(facts(runtime_layer / "python"))
    packages = {"numpy", "numpy.libs", "onnxruntime", "sentencex"}

    assert {name for name in names if not name.endswith(".dist-info")} == packages
    assert {name.partition("-")[0] for name in names - packages} == {"numpy", "onnxruntime", "sentencex"}
    assert not [name for name in files if any(removal.takes(name) for removal in REMOVALS)]
    assert {"onnxruntime/LICENSE", "onnxruntime/ThirdPartyNotices.txt"} <= files
    assert any(re.match(r"numpy-.*\.dist-info/licenses/LICENSE", name) for name in files)
    (metadata,) = (runtime_layer / "python").glob("sentencex-*.dist-info/METADATA")
    assert "License-Expression: MIT" in metadata.read_text("utf-8"), "its wheel has no more than this"


def test_every_removal_removes_something(runtime_layer: Path, said: list[str]) -> None:
    saved = [float(line.split()[1]) for line in said if line.startswith("  less ")]

    assert runtime_layer.is_dir()
    assert len(saved) == len(REMOVALS)
    assert all(saved)


def test_the_runtime_layer_alone_translates_and_compiles_nothing(
    python: Path, runtime_layer: Path, int8_pack: Path
) -> None:
    result = run(python, runtime_layer, TRANSLATE, json.dumps(EVENT), MARIAN_PACK=str(int8_pack))

    assert result["response"]["statusCode"] == 200
    assert json.loads(result["response"]["body"])["translatedText"] == "早安。"
    for package in ("numpy", "onnxruntime"):
        assert any(Path(file).is_relative_to(runtime_layer / "python" / package) for file in result["files"])
    assert not [file for file in result["files"] if "site-packages" in file]
    assert any(Path(file).is_relative_to(ROOT / "function") for file in result["files"])
    assert not [file for file in result["compiled"] if str(runtime_layer) in file]


def test_what_is_left_in_the_runtime_layer_misses_nothing_that_was_removed(python: Path, runtime_layer: Path) -> None:
    failed = run(python, runtime_layer, IMPORT_ALL)

    assert set(failed) <= {
        "numpy._core.cversions",  # of numpy's own build
        "numpy.matlib",  # `from numpy import *`, f2py too
        "onnxruntime.capi.libonnxruntime_providers_shared",  # no module
    }


@pytest.mark.usefixtures("python")
def test_the_runtime_layers_bytecode_is_taken_unchecked_and_names_its_place_in_lambda(runtime_layer: Path) -> None:
    modules = [file for file in files_in(runtime_layer) if file.suffix == ".py"]

    assert modules
    for module in modules:
        compiled = (module.parent / "__pycache__" / f"{module.stem}.cpython-313.pyc").read_bytes()
        assert compiled[4:8] == b"\x01\0\0\0", "hash-based, unchecked"
        assert f"/opt/{module.relative_to(runtime_layer).as_posix()}".encode() in compiled


def test_the_runtime_layer_stays_small(runtime_layer: Path) -> None:
    assert size_of(runtime_layer) < 92e6


def test_a_layer_without_bytecode_translates_too(runtime_layer: Path, python: Path, int8_pack: Path) -> None:
    # No second build for it: it is the layer less its bytecode.
    for compiled in (runtime_layer / "python").rglob("*.pyc"):
        compiled.rename(compiled.with_suffix(".away"))
    try:
        result = run(python, runtime_layer, TRANSLATE, json.dumps(EVENT), MARIAN_PACK=str(int8_pack))
    finally:
        for compiled in (runtime_layer / "python").rglob("*.away"):
            compiled.rename(compiled.with_suffix(".pyc"))

    assert json.loads(result["response"]["body"])["translatedText"] == "早安。"
    assert [file for file in result["compiled"] if str(runtime_layer) in file]


def test_no_python_to_compile_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHON313", "/bin/false")
    with pytest.raises(LayerError, match="PYTHON313 is /bin/false"):
        find_python()

    monkeypatch.delenv("PYTHON313")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(LayerError, match="BYTECODE=no"):
        find_python()


def test_wheels_that_are_not_the_pinned_ones_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    altered = re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", wheels.REQUIREMENTS.read_text("utf-8"))
    (tmp_path / "requirements.txt").write_text(altered, "utf-8")
    monkeypatch.setattr(wheels, "REQUIREMENTS", tmp_path / "requirements.txt")

    with pytest.raises(LayerError, match="says why above"):
        build_runtime(ARCHITECTURE, tmp_path / "out", None, say=lambda _: None)

    assert "DO NOT MATCH THE HASHES" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_model_layer_is_the_pack_and_nothing_else(int8_pack: Path, tmp_path: Path) -> None:
    pack, layer = tmp_path / "pack", tmp_path / "layer"
    pack.mkdir()
    for file in int8_pack.iterdir():
        (pack / file.name).write_bytes(file.read_bytes())
    (pack / "notes.txt").write_text("not of the pack")

    done = make("build-ModelLayer", layer, MARIAN_PACK=str(pack))
    built = facts(layer)
    done_again = make("build-ModelLayer", layer, MARIAN_PACK=str(pack))

    assert done.returncode == done_again.returncode == 0, done.stderr
    assert set(built) == {f"model/{file.name}" for file in int8_pack.iterdir()}
    assert built == facts(layer)
    for file in int8_pack.iterdir():
        assert (layer / "model" / file.name).read_bytes() == file.read_bytes()


def test_a_folder_that_is_no_pack_or_a_damaged_one_makes_no_layer(int8_pack: Path, tmp_path: Path) -> None:
    done = make("build-ModelLayer", tmp_path / "layer", MARIAN_PACK=str(tmp_path))
    assert done.returncode != 0
    assert f"{tmp_path} is no model pack: run `make pack`" in done.stderr

    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "manifest.json").write_bytes((int8_pack / "manifest.json").read_bytes())
    with pytest.raises(LayerError, match="cannot be read"):
        build_model(pack, tmp_path / "layer")

    for name in json.loads((pack / "manifest.json").read_text("utf-8"))["files"]:
        (pack / name).write_text("damaged")
    with pytest.raises(LayerError, match="is not the file that the manifest describes"):
        build_model(pack, tmp_path / "layer")
    assert not (tmp_path / "layer").exists()


def test_a_folder_of_other_things_is_not_built_into(int8_pack: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")

    with pytest.raises(LayerError, match=r"holds thesis\.txt"):
        build_model(int8_pack, tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_zip_has_the_time_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "layer"
    (folder / "b").mkdir(parents=True)
    for name in ("b/2", "a", "b/1"):
        (folder / name).write_text(name)
    dates = {"": (1980, 1, 1, 0, 0, 0), "1000000000": (2001, 9, 9, 1, 46, 40)}

    for epoch, date in dates.items():
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        settle(folder)
        write_zip(folder, tmp_path / "layer.zip")
        with zipfile.ZipFile(tmp_path / "layer.zip") as archive:
            entries = archive.infolist()
            assert [(entry.filename, archive.read(entry)) for entry in entries] == [
                ("a", b"a"),
                ("b/1", b"b/1"),
                ("b/2", b"b/2"),
            ]
            assert {entry.date_time for entry in entries} == {date}

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(LayerError, match="SOURCE_DATE_EPOCH"):
        settle(folder)


def test_sizes_are_held_to_lambdas_limit(
    runtime_layer: Path, int8_pack: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["layer", "sizes", "--runtime", f"{ARCHITECTURE}={runtime_layer}", "--pack", str(int8_pack)]
    monkeypatch.setattr(sys, "argv", arguments)

    assert command_line.main() == 0
    report = capsys.readouterr().out
    assert f"{size_of(runtime_layer):,}" in report
    assert f"{size_of(int8_pack):,}" in report
    assert re.search(r"limit, 250 MB +kept\ngoal, 170 MB +met", report)

    monkeypatch.setattr(sizes, "LIMIT", size_of(runtime_layer))
    monkeypatch.setattr(sizes, "GOAL", size_of(runtime_layer))
    assert command_line.main() == 1
    report = capsys.readouterr().out
    assert "BROKEN" in report
    assert "missed" in report


def test_sizes_of_a_layer_that_is_not_built(
    tmp_path: Path, int8_pack: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["layer", "sizes", "--runtime", f"arm64={tmp_path}", "--pack", str(int8_pack)]
    monkeypatch.setattr(sys, "argv", arguments)

    assert command_line.main() == 2
    assert "`make sizes` builds it first" in capsys.readouterr().err
