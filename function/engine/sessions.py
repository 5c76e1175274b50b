"""ONNX Runtime sessions over a pack's two graphs."""

from __future__ import annotations

import onnxruntime as ort

from function.engine.output_head import read_output_head
from function.engine.pack import ModelPack, PackError, Tensors

ENCODER_FILE = "encoder.onnx"
DECODER_FILE = "decoder.onnx"

# How long threads wait for work by turning in circles. Within a step and between two there are some 100 microseconds
# at most without any. By default they wait for tens of milliseconds, and take the processors from whoever has work.
_SPIN_MICROSECONDS = "200"


def open_encoder(pack: ModelPack, threads: int) -> ort.InferenceSession:
    """The encoder: source ids and mask -> cross-attention keys and values of every decoder layer.

    Raises:
        PackError: the graph cannot be loaded, or its tensors are not those of the manifest.
    """
    return _open(pack, ENCODER_FILE, pack.encoder, threads, ort.SessionOptions())


def open_decoder(pack: ModelPack, threads: int) -> ort.InferenceSession:
    """The decoder step: one target id a row, past and cross-attention keys/values -> logits in parts, log-sums
    of these, new keys/values.

    Raises:
        PackError: as `open_encoder`.
    """
    options = ort.SessionOptions()
    # By DLPack ONNX Runtime holds the arrays, and lets them go when it has made of them what its kernels want.
    given = {name: ort.OrtValue.from_dlpack(integers) for name, integers in read_output_head(pack).items()}
    for name, value in given.items():
        options.add_initializer(name, value)
    return _open(pack, DECODER_FILE, pack.decoder, threads, options)


def _open(
    pack: ModelPack, file: str, expected: Tensors, threads: int, options: ort.SessionOptions
) -> ort.InferenceSession:
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.spin_duration_us", _SPIN_MICROSECONDS)
    options.enable_mem_pattern = False  # one would be kept for every shape that ever was
    # The graphs are written in the operators that are to run. No rewriting makes them faster, and some makes them
    # slower: SkipLayerNormalization takes up to 5 times what it replaces.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    path = pack.path / file
    try:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common public base
        raise PackError(f"{path} cannot be loaded by onnxruntime {ort.__version__}: {error}") from error
    actual = Tensors(
        tuple(tensor.name for tensor in session.get_inputs()),
        tuple(tensor.name for tensor in session.get_outputs()),
    )
    if actual != expected:
        raise PackError(f"{path} has tensors {actual}, the manifest says {expected}: rebuild the pack.")
    return session
