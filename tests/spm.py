"""Changes to SentencePiece models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sentencepiece import sentencepiece_model_pb2


def change_spm(path: Path, change: Callable[[Any], Any]) -> None:
    proto = getattr(sentencepiece_model_pb2, "ModelProto")()  # noqa: B009 (generated: types see no such name)
    proto.ParseFromString(path.read_bytes())
    change(proto)
    path.write_bytes(proto.SerializeToString())
