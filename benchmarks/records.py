"""Data classes from what json.loads gives: the opposite of dataclasses.asdict."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def from_json(kind: type[T], data: Any) -> T:
    """An object of data class `kind`; fields that `data` lacks keep their defaults.

    Raises:
        KeyError, TypeError: `data` does not have the shape of `kind`.
    """
    value: T = _convert(kind, data)
    return value


def _convert(kind: Any, data: Any) -> Any:
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(
            **{
                field.name: _convert(hints[field.name], data[field.name])
                for field in fields(kind)
                if field.name in data
            }
        )
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return [_convert(arguments[0], item) for item in data]
    if origin is dict:
        return {key: _convert(arguments[1], item) for key, item in data.items()}
    if origin is UnionType:  # only `X | None` is used
        (present,) = (argument for argument in arguments if argument is not NoneType)
        return None if data is None else _convert(present, data)
    return data
