"""A pack that is not what its manifest says is refused, and the refusal says why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from function.engine.model import Model
from function.engine.pack import MANIFEST, ModelPack, PackError
from function.engine.sessions import open_decoder, open_encoder
from function.http_handler import handler
from tests.events import rest_api_event


@pytest.fixture
def pack(int8_pack: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(int8_pack, tmp_path / "pack"))


def change_manifest(pack: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    manifest = json.loads((pack / MANIFEST).read_text("utf-8"))
    change(manifest)
    (pack / MANIFEST).write_text(json.dumps(manifest), "utf-8")


def test_a_good_pack_opens(pack: Path) -> None:
    opened = ModelPack.open(pack)

    assert opened.source.code == "en"
    assert opened.targets[0].answers_to("zh")
    assert opened.targets[0].answers_to("ZH-hans")
    assert not opened.targets[0].answers_to("zh-Hant")


@pytest.mark.parametrize("content", [None, "{", "[]", "{}"])
def test_no_readable_manifest(pack: Path, content: str | None) -> None:
    (pack / MANIFEST).unlink()
    if content is not None:
        (pack / MANIFEST).write_text(content)
    with pytest.raises(PackError, match=r"manifest\.json|format version"):
        ModelPack.open(pack)


def test_another_format_version(pack: Path) -> None:
    change_manifest(pack, lambda manifest: manifest.update(format_version=99))
    with pytest.raises(PackError, match="format version 99; this engine reads version 6"):
        ModelPack.open(pack)


def test_every_changed_byte_is_noticed(pack: Path) -> None:
    for file in sorted(pack.iterdir()):
        if file.name == MANIFEST:
            continue
        content = file.read_bytes()
        file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        with pytest.raises(PackError, match=rf"{file.name} does not have the sha256"):
            ModelPack.open(pack)
        file.write_bytes(content)
    ModelPack.open(pack)


def test_a_cut_file(pack: Path) -> None:
    weights = pack / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(PackError, match=r"weights\.bin has \d+ bytes, the manifest says \d+"):
        ModelPack.open(pack)


def test_a_missing_file(pack: Path) -> None:
    (pack / "decoder.onnx").unlink()
    with pytest.raises(PackError, match=r"decoder\.onnx is in the manifest but cannot be read"):
        ModelPack.open(pack)


@pytest.mark.parametrize("key", ["model", "languages", "network", "generation", "tokenizer", "tensors", "quantization"])
def test_a_manifest_without_what_the_engine_needs(pack: Path, key: str) -> None:
    change_manifest(pack, lambda manifest: manifest.pop(key))
    with pytest.raises(PackError, match=f"incomplete or malformed: '{key}'"):
        ModelPack.open(pack)


def test_tensors_other_than_the_manifests(pack: Path) -> None:
    change_manifest(pack, lambda manifest: manifest["tensors"]["decoder"]["inputs"].remove("past_key_values.1.key"))
    opened = ModelPack.open(pack)
    open_encoder(opened, threads=1)
    with pytest.raises(PackError, match=r"decoder\.onnx has tensors .*past_key_values\.1\.key.*rebuild the pack"):
        open_decoder(opened, threads=1)


def test_changed_weights_give_no_translation(pack: Path) -> None:
    """Also when the pack opens before their hash is known."""
    weights = pack / "weights.bin"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)

    opened = ModelPack.open(pack, wait=False)

    with pytest.raises(PackError, match=r"weights\.bin does not have the sha256"):
        Model(opened, threads=1).decode(["Good morning."])


def test_a_service_whose_weights_were_changed_says_so_until_they_are_right(
    pack: Path, service: pytest.MonkeyPatch
) -> None:
    service.setenv("MARIAN_PACK", str(pack))
    weights = pack / "weights.bin"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    event = rest_api_event("POST", "/translate", {"q": "Good morning.", "source": "en", "target": "zh"})

    assert [handler(event, None)["statusCode"] for _ in range(2)] == [500, 500]
    assert handler(rest_api_event("GET", "/health"), None)["statusCode"] == 500
    weights.write_bytes(content)

    assert handler(event, None)["statusCode"] == 200
