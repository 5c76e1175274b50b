"""ONNX Runtime sessions over a pack's two graphs."""

from __future__ import annotations

import platform

import onnxruntime as ort
from numpy._core._multiarray_umath import __cpu_features__  # cpuid as numpy reads it: right under emulation too

from function.engine.pack import ModelPack, PackError, Tensors

ENCODER_FILE = "encoder.onnx"
DECODER_FILE = "decoder.onnx"

# SkipLayerNormalization, which it makes of Add and LayerNormalization, takes 1.6 (one row) to 5 times (32) their time.
DISABLED_OPTIMIZERS = ["SkipLayerNormFusion"]


def open_encoder(pack: ModelPack, threads: int) -> ort.InferenceSession:
    """The encoder: source ids and mask -> cross-attention keys and values of every decoder layer.

    Its threads do not spin after work: they would take the processors from the decoder's, which run
    right after it (measured at 2 threads: 103 -> 61 ms a sentence).

    Raises:
        PackError: the graph cannot be loaded, or its tensors are not those of the manifest.
    """
    return _open(pack, ENCODER_FILE, pack.encoder, threads, spinning=False)


def open_decoder(pack: ModelPack, threads: int) -> ort.InferenceSession:
    """The decoder step: one target id a row, past and cross-attention keys/values -> logits, new keys/values.

    Raises:
        PackError: as `open_encoder`.
    """
    return _open(pack, DECODER_FILE, pack.decoder, threads, spinning=True)


def has_exact_int8_kernels() -> bool:
    """Whether ORT's fast int8 kernels give the right sums on this processor.

    On x86 without VNNI they add two products in 16 bits and saturate, so for packs whose sums may not fit the
    slower exact ones must be asked for (1.1 to 1.2x the time there; elsewhere asking costs up to 1.7x).
    """
    return platform.machine() not in ("x86_64", "AMD64") or __cpu_features__.get("AVX512VNNI", False)


def _open(pack: ModelPack, file: str, expected: Tensors, threads: int, *, spinning: bool) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    if not pack.sums_fit_16_bits and not has_exact_int8_kernels():
        options.add_session_config_entry("session.x64quantprecision", "1")
    path = pack.path / file
    try:
        session = ort.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=DISABLED_OPTIMIZERS
        )
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common public base
        raise PackError(f"{path} cannot be loaded by onnxruntime {ort.__version__}: {error}") from error
    actual = Tensors(
        tuple(tensor.name for tensor in session.get_inputs()),
        tuple(tensor.name for tensor in session.get_outputs()),
    )
    if actual != expected:
        raise PackError(f"{path} has tensors {actual}, the manifest says {expected}: rebuild the pack.")
    return session
