"""A thin layer over onnx.helper: nodes by operator name, weights in one file that graphs share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

CONTRIB = "com.microsoft"  # the domain of ONNX Runtime's own operators
OPSET = 24  # the first with TensorScatter
_IR_VERSION = 11
_ALIGNMENT = 64  # bytes: a cache line, and what vector loads want
_INLINE_BYTES = 1024  # smaller tensors stay in the graph

Array = NDArray[Any]


class WeightFile:
    """The external data of all graphs of a pack. A tensor written under a name twice is stored once."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._written: dict[str, tuple[Array, TensorProto]] = {}

    def add(self, array: Array, name: str) -> TensorProto:
        if name in self._written:
            earlier, tensor = self._written[name]
            if not np.array_equal(earlier, array):
                raise AssertionError(f"two tensors are called {name}")
            return tensor
        self._file.write(b"\0" * (-self._file.tell() % _ALIGNMENT))
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        tensor.data_location = TensorProto.EXTERNAL
        facts = {"location": self._name, "offset": str(self._file.tell()), "length": str(array.nbytes)}
        for key, value in facts.items():
            tensor.external_data.add(key=key, value=value)
        self._file.write(np.ascontiguousarray(array).tobytes())
        self._written[name] = array, tensor
        return tensor


class Graph:
    """A graph under construction. Values are referred to by name; `op` names what it makes."""

    def __init__(self, name: str, weights: WeightFile) -> None:
        self._name = name
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dtype: Any, shape: list[int | str]) -> str:
        self._inputs.append(_value_info(name, dtype, shape))
        return name

    def output(self, name: str, dtype: Any, shape: list[int | str]) -> str:
        self._outputs.append(_value_info(name, dtype, shape))
        return name

    def constant(self, array: Array, name: str) -> str:
        """An initializer; one name always means the same tensor."""
        if name not in self._initializers:
            inline = array.nbytes < _INLINE_BYTES
            self._initializers[name] = (
                numpy_helper.from_array(np.ascontiguousarray(array), name) if inline else self._weights.add(array, name)
            )
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64), "integers_" + "_".join(map(str, values)))

    def op(self, operator: str, *inputs: str, domain: str = "", output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output and return the output's name (`output`, or a new one)."""
        return self.op_many(
            operator, *inputs, domain=domain, outputs=[output or self._new_name(operator)], **attributes
        )[0]

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
