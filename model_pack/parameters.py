"""What a pack's graphs are written from."""

from __future__ import annotations

from dataclasses import dataclass

from function.engine.output_head import IDS_A_WORD
from model_pack.checkpoint import Embeddings, Weights
from model_pack.config import Config
from model_pack.quantization import Quantization

HEAD = "output_head"  # the layer's name, as patterns of layers to exclude see it


@dataclass(frozen=True)
class Network:
    """Everything the two graphs are written from."""

    config: Config
    weights: Weights
    embeddings: Embeddings
    target_ids: list[int]  # the checkpoint's id of each target id
    quantization: Quantization | None  # None: float32

    @property
    def packed_by(self) -> Quantization | None:
        """What makes of the output head words that eight target ids share (function/engine/output_head.py), if any."""
        is_tied = self.embeddings.target is self.embeddings.head
        return self.quantization if is_tied and self.quantization and self.quantization.packs(HEAD) else None

    @property
    def logits(self) -> int:
        """How many a row has: one for each target id, and for each that the head's last word has room for."""
        return len(self.target_ids) + (-len(self.target_ids) % IDS_A_WORD if self.packed_by else 0)
