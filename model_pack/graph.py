"""A thin layer over onnx.helper: nodes by operator name, weights in files that graphs share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

CONTRIB = "com.microsoft"  # the domain of ONNX Runtime's own operators
OPSET = 24  # the first with TensorScatter
_IR_VERSION = 11
WEIGHTS_FILE = "weights.bin"
_ALIGNMENT = 64  # bytes: a cache line, and what vector loads want
_INLINE_BYTES = 1024  # smaller tensors stay in the graph
_NOWHERE = 1 << 40  # bytes

Array = NDArray[Any]


class ExternalData:
    """The files beside a pack's graphs that hold their large tensors. One added under a name twice is stored once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._added: dict[str, tuple[Array, TensorProto]] = {}

    def add(self, array: Array, name: str, file: str) -> TensorProto:
        if name in self._added:
            earlier, tensor = self._added[name]
            if not np.array_equal(earlier, array):
                raise AssertionError(f"two tensors are called {name}")
            return tensor
        with (self._folder / file).open("ab") as content:
            content.write(b"\0" * (-content.tell() % _ALIGNMENT))
            tensor = _external_tensor(name, array.dtype, array.shape, file, content.tell())
            content.write(np.ascontiguousarray(array).tobytes())
        self._added[name] = array, tensor
        return tensor


def _external_tensor(name: str, dtype: Any, shape: tuple[int, ...], file: str, offset: int) -> TensorProto:
    """A tensor whose values stand in a file, from byte `offset` on."""
    tensor = TensorProto(name=name, dims=shape, data_type=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    tensor.data_location = TensorProto.EXTERNAL
    length = np.dtype(dtype).itemsize * math.prod(shape)
    for key, value in {"location": file, "offset": str(offset), "length": str(length)}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


class Graph:
    """A graph under construction. Values are referred to by name; `op` names what it makes.

    Args:
        has_many_rows: whether products are of a row for every token of a sentence, and not of one a sentence.
    """

    def __init__(self, name: str, external: ExternalData, *, has_many_rows: bool) -> None:
        self.has_many_rows = has_many_rows
        self._name = name
        self._external = external
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._computed: dict[tuple[Any, ...], str] = {}  # what nodes compute: the name of it

    def input(self, name: str, dtype: Any, shape: list[int | str]) -> str:
        self._inputs.append(_value_info(name, dtype, shape))
        return name

    def output(self, name: str, dtype: Any, shape: list[int | str]) -> str:
        self._outputs.append(_value_info(name, dtype, shape))
        return name

    def constant(self, array: Array, name: str, file: str = WEIGHTS_FILE) -> str:
        """An initializer, in `file` if it is large; one name always means the same tensor."""
        if name not in self._initializers:
            inline = array.nbytes < _INLINE_BYTES and file == WEIGHTS_FILE
            self._initializers[name] = (
                numpy_helper.from_array(np.ascontiguousarray(array), name)
                if inline
                else self._external.add(array, name, file)
            )
        return name

    def given(self, dtype: Any, shape: tuple[int, ...], name: str, file: str) -> str:
        """An initializer that whoever opens the session computes from `file`, and gives to it.

        The graph looks for it past the file's end: a session that is not given it cannot be opened.
        """
        self._initializers[name] = _external_tensor(name, dtype, shape, file, _NOWHERE)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64), "integers_" + "_".join(map(str, values)))

    def op(self, operator: str, *inputs: str, domain: str = "", output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output and return the output's name (`output`, or a new one).

        What a node computes already, under a new name, is not computed again: linear layers of one input share what
        they need of it.
        """
        key = (operator, inputs, domain, repr(sorted(attributes.items())))
        if output is None and key in self._computed:
            return self._computed[key]
        name = output or self._new_name(operator)
        self.op_many(operator, *inputs, domain=domain, outputs=[name], **attributes)
        return self._computed.setdefault(key, name)

    def op_many(
        self, operator: str, *inputs: str, outputs: list[str], domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add a node with several outputs, named `outputs`."""
        name = self._new_name(f"node_{operator}")
        self._nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, name=name, **attributes))
        return outputs

    def save(self, path: Path) -> None:
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, list(self._initializers.values())
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION), path)

    @property
    def input_names(self) -> list[str]:
        return [value.name for value in self._inputs]

    @property
    def output_names(self) -> list[str]:
        return [value.name for value in self._outputs]

    def _new_name(self, prefix: str) -> str:
        return f"{prefix}_{len(self._nodes)}"


def _value_info(name: str, dtype: Any, shape: list[int | str]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
