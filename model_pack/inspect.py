"""Tells every number of a checkpoint that decoding depends on, and what is unusual about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from function.engine.charsmap import Charsmap
from model_pack.checkpoint import Checkpoint, read_checkpoint
from model_pack.files import write_atomically
from model_pack.languages import language_tokens, languages
from model_pack.tokenizer import read_spm, target_rows


@dataclass(frozen=True)
class Inspection:
    numbers: dict[str, Any]
    remarks: list[str]  # what is unusual, or matters more than it looks


def inspect_checkpoint(path: Path, out: Path | None, say: Callable[[str], None]) -> Inspection:
    """Inspect the checkpoint folder `path`; print the findings, and store them in file `out` as JSON.

    Raises:
        ModelPackError: the folder is not a checkpoint that can be read.
    """
    checkpoint = read_checkpoint(path)
    numbers = {
        "model": checkpoint.model_id,
        "revision": checkpoint.revision,
        "licence": checkpoint.licence,
        **asdict(checkpoint.config),
        "parameters": sum(tensor.size for tensor in checkpoint.weights.values()),
        "stored_dtypes": list(checkpoint.stored_dtypes),
        "source_pieces": len(checkpoint.source_vocabulary),
        "target_rows": len(target_rows(checkpoint)),
    }
    inspection = Inspection(numbers, list(_remarks(checkpoint)))
    width = max(map(len, numbers))
    for name, value in numbers.items():
        say(f"{name:<{width}}  {value}")
    for remark in inspection.remarks:
        say(f"- {remark}")
    if out is not None:
        write_atomically(out, json.dumps(asdict(inspection), ensure_ascii=False, indent=1) + "\n")
    return inspection


def _remarks(checkpoint: Checkpoint) -> Iterator[str]:
    config = checkpoint.config
    pieces = {id_: piece for piece, id_ in checkpoint.target_vocabulary.items()}
    start = f"{config.decoder_start_token_id} ({pieces.get(config.decoder_start_token_id)!r})"
    if config.decoder_start_token_id == config.pad_token_id:
        yield f"The decoder starts with the pad token, {start}: any other start gives other translations."
    else:
        yield f"The decoder starts with {start}, which is not the pad token."
    if config.bad_words_ids:
        banned = ", ".join(f"{id_} ({pieces.get(id_)!r})" for id_ in config.bad_words_ids)
        yield f"Banned tokens: {banned}."
    elif config.decoder_start_token_id == config.pad_token_id:
        yield "The pad token is not banned: the model may choose it, and transformers lets it."
    if config.forced_eos_token_id is None:
        yield f"No forced eos: output that reaches {config.max_length} tokens ends without one."
    else:
        yield f"The last of at most {config.max_length} tokens is a forced {pieces.get(config.forced_eos_token_id)!r}."
    if config.num_beams > 1:
        yield f"generate() uses {config.num_beams} beams by default; a pack decodes greedily, and differs from that."
    if tokens := language_tokens(checkpoint):
        yield f"Language tokens in the vocabulary: {', '.join(tokens)}."
    targets: Any = languages(checkpoint)["targets"]
    yield f"Targets: {', '.join(entry['code'] for entry in targets)}."
    yield from _remarks_on_weights(checkpoint)
    yield from _remarks_on_tokenizer(checkpoint)


def _remarks_on_weights(checkpoint: Checkpoint) -> Iterator[str]:
    config, embeddings = checkpoint.config, checkpoint.embeddings
    if embeddings.source is embeddings.target is embeddings.head:
        yield "One embedding serves encoder, decoder and output head (tied): the pack stores it once."
    else:
        shared = "share a table" if embeddings.source is embeddings.target else "have a table each"
        tied = "is the decoder's table" if embeddings.head is embeddings.target else "has weights of its own"
        yield f"Untied embeddings: encoder and decoder {shared}, the output head {tied}."
    yield "Layer normalisation comes after each sublayer (post-norm)."
    if halves := [dtype for dtype in checkpoint.stored_dtypes if dtype not in ("float32", "int64")]:
        yield f"Weights are stored as {', '.join(halves)}; they are computed with as float32."
    bias = checkpoint.weights.get("final_logits_bias")
    if bias is not None and (rows := int(np.count_nonzero(bias))):
        yield f"final_logits_bias is not zero in {rows} of {bias.size} rows: it belongs to the logits."
    if config.max_length < config.max_position_embeddings:
        yield f"Output is limited to {config.max_length} tokens, below the {config.max_position_embeddings} positions."


def _remarks_on_tokenizer(checkpoint: Checkpoint) -> Iterator[str]:
    config, rows = checkpoint.config, target_rows(checkpoint)
    if (dropped := config.decoder_vocab_size - len(rows)) > 0:
        yield f"{dropped} of {config.decoder_vocab_size} output rows are beyond target.spm; a pack drops them."
    if gaps := config.vocab_size - len(checkpoint.source_vocabulary):
        yield f"{gaps} ids of the vocabulary have no piece."
    if checkpoint.target_vocabulary is not checkpoint.source_vocabulary:
        yield f"Source and target have vocabularies of their own ({config.vocab_size} and {config.decoder_vocab_size})."
    charsmap = read_spm(checkpoint.path / "source.spm").charsmap
    if Charsmap(charsmap, keeps_ascii=False).maps_ascii():
        yield "source.spm changes printable ASCII (case folding, say)."
