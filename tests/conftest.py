"""Packs built once for all tests, by the road that users take."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from function.engine.model import Model
from function.engine.pack import ModelPack
from model_pack.build import build_pack
from model_pack.quantization import Quantization
from tests.checkpoints import write_checkpoint
from tests.fresh import forget_service
from tests.paths import STARTER

# Whoever starts the tests in the background may have Ctrl-C ignored, and what they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _build(folder: Path, quantization: Quantization | None) -> Path:
    build_pack(STARTER, folder, quantization, say=lambda _: None)
    return folder


@pytest.fixture(scope="session")
def fp32_pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(tmp_path_factory.mktemp("packs") / "fp32", None)


@pytest.fixture(scope="session")
def int8_pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(tmp_path_factory.mktemp("packs") / "int8", Quantization())


@pytest.fixture(scope="session")
def fp32_model(fp32_pack: Path) -> Model:
    return Model(ModelPack.open(fp32_pack), threads=2)


@pytest.fixture
def service(int8_pack: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The service on the INT8 pack, its settings read afresh; environment variables may be set on what it gives."""
    monkeypatch.setenv("MARIAN_PACK", str(int8_pack))
    forget_service()
    yield monkeypatch
    forget_service()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A small checkpoint to spoil."""
    return write_checkpoint(tmp_path / "checkpoint", STARTER)
