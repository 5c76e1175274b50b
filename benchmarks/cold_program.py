"""One cold start: `python -m benchmarks.cold_program SYSTEM ...`, a process that translates a sentence and ends.

It prints one line of JSON: the milliseconds of each part since the process was asked for, and its peak RSS.
"""

# Nothing may be imported here that the start of a system would not import itself: it would count as the system's.
from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXT = "The quick brown fox jumps over the lazy dog and gives the value back when there is one."


class Clock:
    """Marks the end of each part, from the moment when the parent asked for the process."""

    def __init__(self, started_ns: int) -> None:
        self._last = started_ns
        self.parts: dict[str, float] = {}

    def mark(self, part: str) -> None:
        now = time.monotonic_ns()  # one clock for all processes
        self.parts[part] = self.parts.get(part, 0.0) + (now - self._last) / 1e6
        self._last = now


def start_ours(clock: Clock, model: Path, _: Path, threads: int, tokens: int) -> int:
    from function.engine.pack import ModelPack  # noqa: PLC0415

    pack = ModelPack.open(model, wait=False)  # as the handlers do
    clock.mark("opening the pack")
    import numpy  # noqa: F401, PLC0415

    clock.mark("import of numpy")
    import onnxruntime  # noqa: F401, PLC0415

    clock.mark("import of onnxruntime")
    from benchmarks.lengths import exactly  # noqa: PLC0415
    from function.engine.model import Model  # noqa: PLC0415

    clock.mark("import of the engine")
    # The search asks whether time is up before it begins, then before every step.
    moments = iter(["sessions and tokenizer", "encoder", "first step"])

    def is_out_of_time() -> bool:
        if part := next(moments, None):
            clock.mark(part)
        return False

    (draft,) = Model(exactly(pack, tokens), threads).decode([TEXT], None, is_out_of_time)
    clock.mark("the other steps")
    return draft.target_tokens


def start_ctranslate2(clock: Clock, model: Path, checkpoint: Path, threads: int, tokens: int) -> int:
    import ctranslate2  # noqa: PLC0415
    import sentencepiece  # noqa: PLC0415

    clock.mark("imports")
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(checkpoint / f"{side}.spm"))
        for side in ("source", "target")
    )
    clock.mark("tokenizer")
    translator = ctranslate2.Translator(str(model), device="cpu", compute_type="int8", intra_threads=threads)
    clock.mark("model")
    pieces = [*source.encode(TEXT, out_type=str), "</s>"]
    (result,) = translator.translate_batch(
        [pieces], beam_size=1, min_decoding_length=tokens, max_decoding_length=tokens
    )
    target.decode_pieces(result.hypotheses[0])
    clock.mark("translation")
    return len(result.hypotheses[0])


def start_optimum(clock: Clock, model: Path, checkpoint: Path, threads: int, tokens: int) -> int:
    import onnxruntime  # noqa: PLC0415
    import torch  # noqa: PLC0415
    from optimum.onnxruntime import ORTModelForSeq2SeqLM  # noqa: PLC0415
    from transformers import MarianTokenizer  # noqa: PLC0415

    from benchmarks.peers import limit_torch, session_options  # noqa: PLC0415

    limit_torch(torch, threads)
    clock.mark("imports")
    tokenizer = MarianTokenizer.from_pretrained(checkpoint)
    clock.mark("tokenizer")
    loaded = ORTModelForSeq2SeqLM.from_pretrained(
        model,
        use_merged=False,
        session_options=session_options(onnxruntime, threads),
        provider="CPUExecutionProvider",
        encoder_file_name="encoder_model.onnx",
        decoder_file_name="decoder_model.onnx",
        decoder_with_past_file_name="decoder_with_past_model.onnx",
    )
    clock.mark("model")
    return _generate(clock, tokenizer, loaded, tokens)


def start_transformers(clock: Clock, model: Path, checkpoint: Path, threads: int, tokens: int) -> int:
    import torch  # noqa: PLC0415
    from transformers import MarianMTModel, MarianTokenizer  # noqa: PLC0415

    from benchmarks.peers import limit_torch  # noqa: PLC0415

    limit_torch(torch, threads)
    clock.mark("imports")
    tokenizer = MarianTokenizer.from_pretrained(checkpoint)
    clock.mark("tokenizer")
    loaded = MarianMTModel.from_pretrained(model, dtype=torch.float32).eval()
    clock.mark("model")
    return _generate(clock, tokenizer, loaded, tokens)


def _generate(clock: Clock, tokenizer: Any, model: Any, tokens: int) -> int:
    import torch  # noqa: PLC0415

    inputs = tokenizer([TEXT], return_tensors="pt")
    with torch.inference_mode():
        generated = model.generate(**inputs, num_beams=1, do_sample=False, min_new_tokens=tokens, max_new_tokens=tokens)
    tokenizer.batch_decode(generated, skip_special_tokens=True)
    clock.mark("translation")
    return int(generated.shape[1]) - 1  # without the decoder start


STARTS: dict[str, Callable[[Clock, Path, Path, int, int], int]] = {
    "ours": start_ours,
    "ctranslate2": start_ctranslate2,
    "optimum": start_optimum,
    "transformers": start_transformers,
}


def main() -> None:
    system, model, checkpoint, threads, tokens, started_ns = sys.argv[1:]
    clock = Clock(int(started_ns))
    clock.mark("interpreter")
    length = STARTS[system](clock, Path(model), Path(checkpoint), int(threads), int(tokens))
    from benchmarks.worker import peak_rss_mb  # noqa: PLC0415

    print(json.dumps({"parts": clock.parts, "peak_rss_mb": peak_rss_mb(), "target_tokens": length}))


if __name__ == "__main__":
    main()
