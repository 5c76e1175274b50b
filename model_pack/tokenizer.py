"""Converts Marian's tokenizer files into the ones that the engine loads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from function.engine.charsmap import Charsmap
from function.engine.tokenizer import (
    CHARSMAP_FILE,
    ID_TYPE,
    SCORE_TYPE,
    SOURCE_IDS_FILE,
    SOURCE_SCORES_FILE,
    SOURCE_VOCABULARY_FILE,
    TARGET_VOCABULARY_FILE,
)
from function.engine.unigram import pieces_stay_within_words
from model_pack.checkpoint import Checkpoint
from model_pack.errors import ModelPackError

_SPM: Any = sentencepiece_model_pb2  # generated code: type checkers see nothing in it
_PIECE = _SPM.ModelProto.SentencePiece
_TRAINER = _SPM.TrainerSpec


@dataclass(frozen=True)
class SpmModel:
    """What Marian needs of a SentencePiece unigram model."""

    pieces: list[tuple[str, float]]  # normal pieces and their log-probabilities
    charsmap: bytes


def read_spm(path: Path) -> SpmModel:
    """Read an spm file.

    Raises:
        ModelPackError: not an spm file, not a unigram model, or one that departs from the rules
            that the engine's tokenizer follows.
    """
    proto = _SPM.ModelProto()
    try:
        proto.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise ModelPackError(f"{path} is not a SentencePiece model.") from error
    if proto.trainer_spec.model_type != _TRAINER.UNIGRAM:
        kind = _TRAINER.ModelType.Name(proto.trainer_spec.model_type)
        raise ModelPackError(f"{path} is a {kind} model; Marian's tokenizer here knows only unigram models.")
    normalizer = proto.normalizer_spec
    rules = (normalizer.add_dummy_prefix, normalizer.remove_extra_whitespaces, normalizer.escape_whitespaces)
    if not all(rules) or proto.trainer_spec.treat_whitespace_as_suffix:
        raise ModelPackError(f"{path} treats spaces in another way than SentencePiece's default, which is not known.")
    unknown_kinds = {piece.type for piece in proto.pieces} - {_PIECE.NORMAL, _PIECE.UNKNOWN, _PIECE.CONTROL}
    if unknown_kinds:
        kinds = ", ".join(map(_PIECE.Type.Name, unknown_kinds))
        raise ModelPackError(f"{path} has pieces of the kind {kinds}, which are not known here.")
    pieces = [(piece.piece, piece.score) for piece in proto.pieces if piece.type == _PIECE.NORMAL]
    if not pieces:
        raise ModelPackError(f"{path} holds no pieces.")
    return SpmModel(pieces, normalizer.precompiled_charsmap)


def target_rows(checkpoint: Checkpoint, *, keep_all: bool = False) -> dict[int, str]:
    """The rows that the output head keeps: the checkpoint's id of each, in order, and its piece.

    By default these are what the target side can produce: the pieces of target.spm, and eos and unk. The
    decoder start token and the banned tokens have rows too: the first is an input, the others are refused
    by name. `keep_all` keeps every row; an id without a piece then has an empty one.
    """
    config, vocabulary = checkpoint.config, checkpoint.target_vocabulary
    producible = {piece for piece, _ in read_spm(checkpoint.path / "target.spm").pieces} | {unk_token(checkpoint)}
    special_ids = {config.eos_token_id, config.decoder_start_token_id, *config.bad_words_ids}
    if config.forced_eos_token_id is not None:
        special_ids.add(config.forced_eos_token_id)
    by_id = {id_: piece for piece, id_ in vocabulary.items()}
    if missing := special_ids - by_id.keys():
        raise ModelPackError(f"{checkpoint.path}: the target vocabulary has no piece for the ids {sorted(missing)}.")
    if keep_all:
        return {id_: by_id.get(id_, "") for id_ in range(config.decoder_vocab_size)}
    return {id_: by_id[id_] for id_ in sorted(by_id) if by_id[id_] in producible or id_ in special_ids}


def unk_token(checkpoint: Checkpoint) -> str:
    return str(checkpoint.tokenizer_config.get("unk_token", "<unk>"))


def write_tokenizer(checkpoint: Checkpoint, target_pieces: list[str], out: Path) -> dict[str, object]:
    """Write the tokenizer files into folder `out`; returns what the manifest says of them.

    Raises:
        ModelPackError: source.spm is not one that the engine's tokenizer can follow, vocab.json
            lacks a special token, or a piece has a line break.
    """
    source = read_spm(checkpoint.path / "source.spm")
    special = {
        "eos_token": checkpoint.tokenizer_config.get("eos_token", "</s>"),
        "unk_token": unk_token(checkpoint),
        "pad_token": checkpoint.tokenizer_config.get("pad_token", "<pad>"),
    }
    for token in special.values():
        if token not in checkpoint.source_vocabulary:
            raise ModelPackError(f"{checkpoint.path / 'vocab.json'} lacks the special token {token!r}.")

    vocabulary = checkpoint.source_vocabulary
    pieces = [piece for piece, _ in source.pieces]
    lines = [*pieces, *sorted(vocabulary.keys() - set(pieces))]
    ids = [vocabulary.get(piece, vocabulary[special["unk_token"]]) for piece in lines]
    _write_lines(out / SOURCE_VOCABULARY_FILE, lines)
    np.array(ids, ID_TYPE).tofile(out / SOURCE_IDS_FILE)
    np.array([score for _, score in source.pieces], SCORE_TYPE).tofile(out / SOURCE_SCORES_FILE)
    _write_lines(out / TARGET_VOCABULARY_FILE, target_pieces)
    (out / CHARSMAP_FILE).write_bytes(source.charsmap)
    return {
        **special,
        "source_eos_id": vocabulary[special["eos_token"]],
        "source_unk_id": vocabulary[special["unk_token"]],
        "keeps_ascii": not Charsmap(source.charsmap, keeps_ascii=False).maps_ascii(),
        "pieces_stay_within_words": pieces_stay_within_words(pieces),
    }


def _write_lines(path: Path, pieces: list[str]) -> None:
    for piece in pieces:
        if "\n" in piece:
            raise ModelPackError(f"{path.name} cannot hold the piece {piece!r}: a line break in a piece is not known.")
    path.write_text("\n".join(pieces), "utf-8")
