"""The export that most people use, optimum's: a second witness. It needs an environment of its own.

It writes four graphs: `encoder_model`; `decoder_model`, the first step, which makes the caches;
`decoder_with_past_model`, every later step; and `decoder_model_merged`, both decoders behind an `If`.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from optimum.exporters.onnx import main_export
from optimum.onnxruntime import ORTModelForSeq2SeqLM
from transformers import MarianMTModel, MarianTokenizer

from model_pack.errors import ModelPackError

TASK = "text2text-generation-with-past"
_CHECKED_SENTENCES = 10


def export_with_optimum(checkpoint: Path, out: Path, opset: int, say: Callable[[str], None]) -> None:
    """Export the checkpoint into folder `out` and check it with optimum's own ORTModelForSeq2SeqLM.

    Raises:
        ModelPackError: `out` is something else, or the export does not translate as transformers does.
    """
    if out.exists() and not (out / "encoder_model.onnx").is_file():
        raise ModelPackError(f"{out} exists and is not an export of optimum's; choose another --out or remove it.")
    say(f"Exporting {checkpoint} with optimum, opset {opset}")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as workspace:
        exported = Path(workspace, "exported")
        main_export(str(checkpoint), exported, task=TASK, opset=opset, do_validation=False)
        say("Checking it with ORTModelForSeq2SeqLM")
        _check(checkpoint, exported)
        if out.exists():
            shutil.move(out, Path(workspace, "replaced"))
        exported.rename(out)
    for file in sorted(out.glob("*.onnx")):
        say(f"{file}  {file.stat().st_size / 1e6:.1f} MB")


def _check(checkpoint: Path, exported: Path) -> None:
    tokenizer = MarianTokenizer.from_pretrained(checkpoint)
    reference = MarianMTModel.from_pretrained(checkpoint, torch_dtype=torch.float32).eval()
    model = ORTModelForSeq2SeqLM.from_pretrained(exported)
    with (Path(__file__).parent / "evalset" / "sentences.tsv").open(encoding="utf-8", newline="") as file:
        sentences = [row["source"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    for sentence in sentences[:_CHECKED_SENTENCES]:
        inputs = tokenizer(sentence, return_tensors="pt")
        expected, got = (
            generator.generate(**inputs, num_beams=1, do_sample=False)[0].tolist() for generator in (reference, model)
        )
        if got != expected:
            raise ModelPackError(f"optimum's export does not translate {sentence!r} as transformers does.")
