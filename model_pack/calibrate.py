"""Measures the ranges of activations, for static quantisation."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnxruntime as ort
from tqdm import tqdm

from function.engine.greedy import GreedySearch
from function.engine.pack import ModelPack
from function.engine.sessions import DECODER_FILE, ENCODER_FILE
from function.engine.tokenizer import Tokenizer
from model_pack.build import build_pack
from model_pack.errors import ModelPackError
from model_pack.linear import layer_inputs
from model_pack.quantization import Range


def calibrate(checkpoint: Path, texts: Sequence[str]) -> dict[str, Range]:
    """The range of every linear layer's input while a float32 pack translates `texts` greedily.

    Raises:
        ModelPackError: no texts, or the checkpoint cannot be built.
    """
    if not texts:
        raise ModelPackError("static quantisation needs text to measure activations on; the calibration set is empty.")
    with tempfile.TemporaryDirectory() as workspace:
        path = Path(workspace, "fp32")
        build_pack(checkpoint, path, None, say=lambda _: None)
        pack = ModelPack.open(path)
        encoder, decoder = (_RecordingSession(path / file) for file in (ENCODER_FILE, DECODER_FILE))
        tokenizer, search = Tokenizer(pack), GreedySearch(pack, encoder, decoder)
        for text in tqdm(texts, unit="sentence", desc="calibration"):
            search([tokenizer.encode_text(text)])  # one at a time: padding would count as activation
        return encoder.ranges | decoder.ranges


class _RecordingSession(ort.InferenceSession):  # type: ignore[misc] # onnxruntime brings no types
    """A session that also fetches what goes into each linear layer, and keeps its least and greatest value."""

    def __init__(self, path: Path) -> None:
        model, self._layer_inputs = layer_inputs(path)
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
        super().__init__(model, options, providers=["CPUExecutionProvider"])
        self.ranges: dict[str, Range] = {}

    def run_with_iobinding(self, iobinding: ort.IOBinding, run_options: ort.RunOptions | None = None) -> None:
        names = list(dict.fromkeys(self._layer_inputs.values()))
        for name in names:
            iobinding.bind_output(name)
        super().run_with_iobinding(iobinding, run_options)
        values = dict(zip(names, iobinding.get_outputs()[-len(names) :], strict=True))
        for layer, name in self._layer_inputs.items():
            value = values[name].numpy()
            low, high = float(value.min()), float(value.max())
            seen = self.ranges.get(layer, Range(low, high))
            self.ranges[layer] = Range(min(seen.low, low), max(seen.high, high))
