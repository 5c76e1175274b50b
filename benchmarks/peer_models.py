"""Makes the models of the systems measured against: `python -m benchmarks.peer_models STEP SOURCE OUT`.

It runs in the peers' environment; `models.py` calls it.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

THREE_FILES = ("encoder_model.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx")


def export_with_optimum(checkpoint: Path, out: Path) -> None:
    """The three files that optimum's exporter writes before it merges the two decoders."""
    from optimum.exporters.onnx import main_export  # noqa: PLC0415

    task = "text2text-generation-with-past"
    main_export(str(checkpoint), out, task=task, opset=17, do_validation=False, no_post_process=True)


def quantize_export(export: Path, out: Path) -> None:
    """Each of the three files through ONNX Runtime's dynamic quantisation, with its usual settings."""
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415

    out.mkdir()
    for file in sorted(export.iterdir()):
        if file.suffix != ".onnx":
            shutil.copyfile(file, out / file.name)
    for name in THREE_FILES:
        quantize_dynamic(export / name, out / name, per_channel=True, weight_type=QuantType.QInt8)


def convert_to_ctranslate2(checkpoint: Path, out: Path) -> None:
    from ctranslate2.converters import TransformersConverter  # noqa: PLC0415

    TransformersConverter(str(checkpoint)).convert(str(out), quantization="int8")


def convert_to_ctranslate2_with_pad(checkpoint: Path, out: Path) -> None:
    """The same for a checkpoint whose pad has an embedding, such as the starter's.

    Marian's own models begin the target with zeros, and the converter takes that for granted: it drops pad. With it,
    the starter's sentences begin as they should. As everywhere else, pad itself is never chosen.
    """
    from ctranslate2.converters import TransformersConverter, transformers  # noqa: PLC0415

    class Loader(transformers.MarianMTLoader):  # type: ignore[misc]
        def get_model_spec(self, model: Any) -> Any:
            model.final_logits_bias[0, model.config.pad_token_id] = -1e9
            return super().get_model_spec(model)

        def set_decoder(self, spec: Any, decoder: Any) -> None:
            super().set_decoder(spec, decoder)
            spec.start_from_zero_embedding = False

        def set_config(self, config: Any, model: Any, tokenizer: Any) -> None:
            super().set_config(config, model, tokenizer)
            config.decoder_start_token = tokenizer.pad_token

        def get_vocabulary(self, model: Any, tokenizer: Any) -> Any:
            return transformers.BartLoader.get_vocabulary(self, model, tokenizer)

        def _remove_pad_weights(self, spec: Any) -> None:
            pass

    transformers._MODEL_LOADERS["MarianConfig"] = Loader()
    TransformersConverter(str(checkpoint)).convert(str(out), quantization="int8")


STEPS = {
    "optimum": export_with_optimum,
    "quantize": quantize_export,
    "ctranslate2": convert_to_ctranslate2,
    "ctranslate2-with-pad": convert_to_ctranslate2_with_pad,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer_models", description="Make a peer's model.")
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    STEPS[arguments.step](arguments.source, arguments.out)


if __name__ == "__main__":
    main()
