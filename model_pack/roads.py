"""The roads a checkpoint's network can be run by, each made to tell the same things about a batch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from function.engine.decoding import Decoding
from function.engine.greedy import GreedySearch, choose
from function.engine.lines import Lines
from function.engine.logits import Logits
from function.engine.pack import Generation, ModelPack
from function.engine.sessions import open_decoder, open_encoder
from function.engine.tokenizer import TARGET_VOCABULARY_FILE
from model_pack.checkpoint import Checkpoint
from model_pack.errors import ModelPackError
from model_pack.network import ENCODER_STATES
from model_pack.tokenizer import target_rows

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Batch:
    """Sentences, padded, and the decoder's inputs that every road is given (teacher forcing)."""

    source_ids: NDArray[np.int64]  # [B, S]
    attention_mask: NDArray[np.int32]  # [B, S]
    decoder_ids: NDArray[np.int64]  # [B, T], ids of the checkpoint, decoder start first


@dataclass(frozen=True)
class Trace:
    """What a road computed for a batch."""

    encoder_states: Array  # [B, S, D]
    cross: list[Array]  # key, value of each layer: [B, H, S, D/H]
    past: list[Array]  # key, value of each layer after the last step: [B, H, T, D/H]
    logits: Array  # [B, T, N]
    logit_ids: list[int]  # the checkpoint's id of each of the N


class Road(Protocol):
    def trace(self, batch: Batch) -> Trace: ...

    def greedy_ids(self, source_ids: Sequence[int]) -> list[int]:
        """The checkpoint's ids that greedy search gives, eos included, decoder start left out."""
        ...


@dataclass
class TransformersRoad:
    """The reference: MarianMTModel itself."""

    checkpoint: Checkpoint
    model: Any = field(init=False)
    tokenizer: Any = field(init=False)

    def __post_init__(self) -> None:
        try:
            import torch  # noqa: PLC0415 (only the environment of this road has it)
            from transformers import MarianMTModel, MarianTokenizer  # noqa: PLC0415
        except ImportError as error:
            raise ModelPackError(
                f"the reference needs torch and transformers ({error}): `make .venv-export/stamp` sets up an "
                "environment that has them."
            ) from error
        self.model = MarianMTModel.from_pretrained(self.checkpoint.path, dtype=torch.float32).eval()
        self.tokenizer = MarianTokenizer.from_pretrained(self.checkpoint.path)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text).input_ids
        return ids

    def trace(self, batch: Batch) -> Trace:
        import torch  # noqa: PLC0415

        with torch.inference_mode():
            output = self.model(
                input_ids=torch.from_numpy(batch.source_ids),
                attention_mask=torch.from_numpy(batch.attention_mask.astype(np.int64)),
                decoder_input_ids=torch.from_numpy(batch.decoder_ids),
                use_cache=True,
            )
        cache = getattr(output, "cache", None) or output.past_key_values  # newer and older versions' name
        return Trace(
            output.encoder_last_hidden_state.numpy(),
            _keys_values(cache.cross_attention_cache),
            _keys_values(cache.self_attention_cache),
            output.logits.numpy(),
            list(range(output.logits.shape[-1])),
        )

    def greedy_ids(self, source_ids: Sequence[int]) -> list[int]:
        import torch  # noqa: PLC0415

        output = self.model.generate(torch.tensor([source_ids]), num_beams=1, do_sample=False)
        ids: list[int] = output[0].tolist()[1:]
        return ids


@dataclass
class PackRoad:
    """A pack, run by the engine: built directly or exported by torch."""

    checkpoint: Checkpoint
    path: Path
    threads: int

    def __post_init__(self) -> None:
        self._pack = ModelPack.open(self.path)
        self.precision = self._pack.precision
        self._encoder = open_encoder(self._pack, self.threads)
        self._decoder = open_decoder(self._pack, self.threads)
        self._search = GreedySearch(self._pack, self._encoder, self._decoder)
        rows = [target_rows(self.checkpoint, keep_all=keep_all) for keep_all in (False, True)]
        pieces = Lines(self.path / TARGET_VOCABULARY_FILE)
        fitting = [list(kept) for kept in rows if list(kept.values()) == pieces.head(len(pieces))]
        if not fitting:
            raise ModelPackError(
                f"{self.path} was not built from {self.checkpoint.path}: its {len(pieces)} target pieces are others."
            )
        self._checkpoint_ids = fitting[0]

    def trace(self, batch: Batch) -> Trace:
        feeds = {"input_ids": batch.source_ids, "attention_mask": batch.attention_mask}
        (states,) = self._encoder.run([ENCODER_STATES], feeds)
        decoding = Decoding(self._pack, self._encoder, self._decoder, batch.source_ids, batch.attention_mask)
        target_id = {id_: row for row, id_ in enumerate(self._checkpoint_ids)}
        # An id whose row the pack has not kept cannot be told to it; the difference then shows.
        start = self._pack.generation.decoder_start_token_id
        known = slice(len(self._checkpoint_ids))  # what comes after them only fills the output head's last word
        logits = [
            np.concatenate(decoding.step([target_id.get(int(id_), start) for id_ in ids]).parts, -1)[:, known]
            for ids in batch.decoder_ids.T
        ]
        return Trace(states, list(decoding.cross), list(decoding.past), np.stack(logits, 1), self._checkpoint_ids)

    def greedy_ids(self, source_ids: Sequence[int]) -> list[int]:
        (hypothesis,) = self._search([list(source_ids)])
        return [self._checkpoint_ids[id_] for id_ in hypothesis.token_ids]


@dataclass
class OptimumRoad:
    """optimum's files: an encoder, a decoder for the first step and one with past. Names are read from them."""

    checkpoint: Checkpoint
    path: Path
    threads: int

    def __post_init__(self) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.log_severity_level = 3
        self._encoder, self._first, self._next = (
            ort.InferenceSession(str(self.path / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
            for name in ("encoder_model", "decoder_model", "decoder_with_past_model")
        )

    def trace(self, batch: Batch) -> Trace:
        states = self._encode(batch.source_ids, batch.attention_mask)
        caches: dict[str, Array] = {}
        logits = []
        for ids in batch.decoder_ids.T:
            step, caches = self._step(ids[:, None], states, batch.attention_mask, caches)
            logits.append(step)
        all_logits = np.concatenate(logits, 1)
        layers = range(self.checkpoint.config.decoder_layers)
        cross, past = (
            [caches[f"{layer}.{side}.{part}"] for layer in layers for part in ("key", "value")]
            for side in ("encoder", "decoder")
        )
        return Trace(states, cross, past, all_logits, list(range(all_logits.shape[-1])))

    def greedy_ids(self, source_ids: Sequence[int]) -> list[int]:
        config = self.checkpoint.config
        generation = Generation(
            config.decoder_start_token_id,
            config.eos_token_id,
            config.forced_eos_token_id,
            config.bad_words_ids,
            config.max_length,
        )
        mask = np.ones((1, len(source_ids)), np.int32)
        states = self._encode(np.array([source_ids]), mask)
        caches: dict[str, Array] = {}
        ids = [config.decoder_start_token_id]
        while len(ids) < config.max_length and (len(ids) == 1 or ids[-1] != config.eos_token_id):
            step, caches = self._step(np.array([ids[-1:]]), states, mask, caches)
            logits = Logits([step[:, -1].copy()], log_sums=np.zeros((1, 1), np.float32))  # nobody asks for scores
            ids += choose(logits, generation, is_last=len(ids) == config.max_length - 1)
        return ids[1:]

    def _encode(self, source_ids: NDArray[np.int64], mask: NDArray[np.int32]) -> Array:
        feeds = {"input_ids": source_ids, "attention_mask": mask.astype(np.int64)}
        states: Array = self._encoder.run(None, feeds)[0]
        return states

    def _step(
        self, ids: NDArray[np.int64], states: Array, mask: NDArray[np.int32], caches: dict[str, Array]
    ) -> tuple[Array, dict[str, Array]]:
        session = self._next if caches else self._first
        common = {"input_ids": ids, "encoder_hidden_states": states, "encoder_attention_mask": mask.astype(np.int64)}
        feeds = {
            tensor.name: caches[key] if (key := _cache_key(tensor.name)) else common[tensor.name]
            for tensor in session.get_inputs()
        }
        names = [tensor.name for tensor in session.get_outputs()]
        outputs = dict(zip(names, session.run(None, feeds), strict=True))
        # A step with past gives only the decoder's own keys and values anew.
        given = {key: outputs[name] for name in names if (key := _cache_key(name))}
        return outputs["logits"], caches | given


def _cache_key(name: str) -> str | None:
    """ "present.3.encoder.key" and "past_key_values.3.encoder.key" are one cache: "3.encoder.key"."""
    found = re.search(r"\d+\.(encoder|decoder)\.(key|value)$", name)
    return found.group() if found else None


def _keys_values(cache: Any) -> list[Array]:
    return [tensor.numpy() for layer in cache.layers for tensor in (layer.keys, layer.values)]
