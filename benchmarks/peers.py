"""The systems measured against. They run in an environment of their own, and each imports only what it needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.backend import Backend, Job, Options
from benchmarks.work import MOST_TOKENS, Decode, Output, Translate, Work

Array = NDArray[Any]


class _Generating:
    """What transformers and optimum share: tensors in, `generate`, tensors out."""

    def __init__(self, options: Options, model: Any) -> None:
        import torch  # noqa: PLC0415
        from transformers import MarianTokenizer  # noqa: PLC0415

        self._torch = torch
        self._model = model
        self._tokenizer = MarianTokenizer.from_pretrained(options.checkpoint)

    def job(self, work: Work) -> Job:
        match work:
            case Decode():
                return self._decoding(work)
            case Translate():
                return self._translation(work)
            case _:
                raise _no_such_work(work)

    def _decoding(self, work: Decode) -> Job:
        source_ids, attention_mask = (self._torch.tensor(array) for array in pad(work.sources, 0))
        length = work.target_tokens

        def run() -> Output:
            generated = self._generate(
                input_ids=source_ids, attention_mask=attention_mask, min_new_tokens=length, max_new_tokens=length
            )
            return Output(lengths=[generated.shape[1] - 1] * generated.shape[0])  # without the decoder start

        return run

    def _translation(self, work: Translate) -> Job:
        groups = [work.texts] if work.together else [[text] for text in work.texts]
        length = exact_length(work.target_tokens) if work.target_tokens else {"max_new_tokens": MOST_TOKENS}

        def run() -> Output:
            texts: list[str] = []
            for group in groups:
                inputs = self._tokenizer(group, return_tensors="pt", padding=True)
                texts += self._tokenizer.batch_decode(self._generate(**inputs, **length), skip_special_tokens=True)
            return Output(texts=texts)

        return run

    def _generate(self, **inputs: Any) -> Any:
        with self._torch.inference_mode():
            return self._model.generate(num_beams=1, do_sample=False, use_cache=True, **inputs)


def exact_length(tokens: int) -> dict[str, int]:
    """What makes `generate` give so many tokens."""
    return {"min_new_tokens": tokens, "max_new_tokens": tokens}


class Transformers(_Generating):
    """transformers on torch, float32."""

    def __init__(self, options: Options) -> None:
        import torch  # noqa: PLC0415
        from transformers import MarianMTModel  # noqa: PLC0415

        limit_torch(torch, options.threads)
        super().__init__(options, MarianMTModel.from_pretrained(options.model, dtype=torch.float32).eval())


class Optimum(_Generating):
    """optimum's ORTModelForSeq2SeqLM on the three files of an export: encoder, first step, later steps."""

    def __init__(self, options: Options) -> None:
        import onnxruntime  # noqa: PLC0415
        import torch  # noqa: PLC0415
        from optimum.onnxruntime import ORTModelForSeq2SeqLM  # noqa: PLC0415

        limit_torch(torch, options.threads)
        model = ORTModelForSeq2SeqLM.from_pretrained(
            options.model,
            use_merged=False,
            session_options=session_options(onnxruntime, options.threads),
            provider="CPUExecutionProvider",
            encoder_file_name="encoder_model.onnx",
            decoder_file_name="decoder_model.onnx",
            decoder_with_past_file_name="decoder_with_past_model.onnx",
        )
        super().__init__(options, model)


class Loop:
    """The same three files with plain `run` calls and numpy's argmax: what one writes to be rid of torch."""

    def __init__(self, options: Options) -> None:
        import onnxruntime  # noqa: PLC0415

        self._encoder, self._first, self._later = (
            onnxruntime.InferenceSession(
                str(options.model / f"{name}.onnx"),
                session_options(onnxruntime, options.threads),
                providers=["CPUExecutionProvider"],
            )
            for name in ("encoder_model", "decoder_model", "decoder_with_past_model")
        )
        self._later_inputs = {tensor.name for tensor in self._later.get_inputs()}
        self._first_outputs, self._later_outputs = (
            [tensor.name for tensor in session.get_outputs()] for session in (self._first, self._later)
        )
        config = json.loads((options.model / "config.json").read_text("utf-8"))
        self._start, self._eos, self._pad = (
            config[name] for name in ("decoder_start_token_id", "eos_token_id", "pad_token_id")
        )
        self._tokenizer = Pieces(options.checkpoint)

    def job(self, work: Work) -> Job:
        match work:
            case Decode():
                source_ids, attention_mask = pad(work.sources, self._pad)
                length = work.target_tokens
                return lambda: Output(lengths=[len(row) for row in self._decode(source_ids, attention_mask, length)])
            case Translate():
                return self._translation(work)
            case _:
                raise _no_such_work(work)

    def _translation(self, work: Translate) -> Job:
        groups = [work.texts] if work.together else [[text] for text in work.texts]

        def run() -> Output:
            texts: list[str] = []
            for group in groups:
                rows = self._decode(*pad([self._tokenizer.ids(text) for text in group], self._pad), None)
                texts += [self._tokenizer.text(row) for row in rows]
            return Output(texts=texts)

        return run

    def _decode(self, source_ids: Array, attention_mask: Array, length: int | None) -> list[list[int]]:
        """Exactly `length` tokens a row; or up to eos, which is left out, and MOST_TOKENS at most."""
        (states,) = self._encoder.run(
            ["last_hidden_state"], {"input_ids": source_ids, "attention_mask": attention_mask}
        )
        current = np.full((len(source_ids), 1), self._start, np.int64)
        is_finished = np.zeros(len(source_ids), bool)
        rows: list[list[int]] = [[] for _ in source_ids]
        past: dict[str, Array] = {}
        for _ in range(length or MOST_TOKENS):
            if past:
                feeds = {"input_ids": current, "encoder_attention_mask": attention_mask, **past}
                names, session = self._later_outputs, self._later
            else:
                feeds = {
                    "input_ids": current,
                    "encoder_attention_mask": attention_mask,
                    "encoder_hidden_states": states,
                }
                names, session = self._first_outputs, self._first
            outputs = dict(zip(names, session.run(names, feeds), strict=True))
            logits = outputs.pop("logits")[:, -1]
            logits[:, self._pad] = -np.inf
            if length:
                logits[:, self._eos] = -np.inf
            past |= {name.replace("present", "past_key_values"): tensor for name, tensor in outputs.items()}
            past = {name: tensor for name, tensor in past.items() if name in self._later_inputs}
            chosen = logits.argmax(-1)
            is_finished |= chosen == self._eos
            for row, token_id, finished in zip(rows, chosen, is_finished, strict=True):
                if not finished:
                    row.append(int(token_id))
            if is_finished.all():
                break
            current = chosen[:, None]
        return rows


class CTranslate2:
    """CTranslate2 INT8 with SentencePiece, as its documentation has it for Marian models."""

    def __init__(self, options: Options) -> None:
        import ctranslate2  # noqa: PLC0415

        self._translator = ctranslate2.Translator(
            str(options.model),
            device="cpu",
            compute_type="int8",
            inter_threads=options.inter_threads,
            intra_threads=options.threads,
        )
        self._vocabulary: list[str] = json.loads((options.model / "shared_vocabulary.json").read_text("utf-8"))
        self._tokenizer = Pieces(options.checkpoint)

    def job(self, work: Work) -> Job:
        match work:
            case Decode():
                pieces = [[self._vocabulary[id_] for id_ in ids] for ids in work.sources]
                length = {"min_decoding_length": work.target_tokens, "max_decoding_length": work.target_tokens}
                return lambda: Output(lengths=[len(row) for row in self._decode(pieces, work.max_batch_size, **length)])
            case Translate():
                return self._translation(work)
            case _:
                raise _no_such_work(work)

    def _translation(self, work: Translate) -> Job:
        groups = [work.texts] if work.together else [[text] for text in work.texts]

        def run() -> Output:
            texts: list[str] = []
            for group in groups:
                pieces = [self._tokenizer.source_pieces(text) for text in group]
                rows = self._decode(pieces, work.max_batch_size, max_decoding_length=MOST_TOKENS)
                texts += [self._tokenizer.join(row) for row in rows]
            return Output(texts=texts)

        return run

    def _decode(self, pieces: list[list[str]], max_batch_size: int, **options: int) -> list[list[str]]:
        results = self._translator.translate_batch(pieces, beam_size=1, max_batch_size=max_batch_size, **options)
        return [result.hypotheses[0] for result in results]


class Pieces:
    """SentencePiece with a Marian vocabulary, for the systems that bring no tokenizer."""

    def __init__(self, checkpoint: Path) -> None:
        import sentencepiece  # noqa: PLC0415

        self._source, self._target = (
            sentencepiece.SentencePieceProcessor(model_file=str(checkpoint / f"{side}.spm"))
            for side in ("source", "target")
        )
        self._id_of_piece: dict[str, int] = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
        self._piece_of_id = {id_: piece for piece, id_ in self._id_of_piece.items()}

    def source_pieces(self, text: str) -> list[str]:
        pieces: list[str] = self._source.encode(text, out_type=str)
        return [*pieces, "</s>"]

    def ids(self, text: str) -> list[int]:
        unknown = self._id_of_piece["<unk>"]
        return [self._id_of_piece.get(piece, unknown) for piece in self.source_pieces(text)]

    def join(self, pieces: list[str]) -> str:
        return str(self._target.decode_pieces(pieces))

    def text(self, ids: list[int]) -> str:
        return self.join([self._piece_of_id[id_] for id_ in ids])


def pad(sources: list[list[int]], padding: int) -> tuple[Array, Array]:
    """Source ids [B, S] and attention mask [B, S], int64 as the exports want them."""
    longest = max(map(len, sources))
    source_ids = np.full((len(sources), longest), padding, np.int64)
    attention_mask = np.zeros_like(source_ids)
    for row, ids in enumerate(sources):
        source_ids[row, : len(ids)] = ids
        attention_mask[row, : len(ids)] = 1
    return source_ids, attention_mask


def session_options(onnxruntime: Any, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return options


def limit_torch(torch: Any, threads: int) -> None:
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)


def _no_such_work(work: Work) -> NotImplementedError:
    return NotImplementedError(f"{type(work).__name__} is no work for this system")


BACKENDS: dict[str, Callable[[Options], Backend]] = {
    "transformers": Transformers,
    "optimum": Optimum,
    "loop": Loop,
    "ctranslate2": CTranslate2,
}
