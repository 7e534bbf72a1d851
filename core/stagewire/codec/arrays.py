"""numpy arrays, without importing numpy before a payload has one."""

from __future__ import annotations

import math
import re
import sys
from typing import TYPE_CHECKING, Any

from stagewire.errors import CodecError

if TYPE_CHECKING:
    import numpy as np

KINDS = "biufcmMS"
"""Kinds of items that travel: bool, integers, floats, complex, time spans, times, bytes of a fixed length."""

_DTYPE = re.compile(r"[<>|][biufcS][1-9]\d{0,8}|[<>][mM]8(\[\d{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")
_MAX_DIMENSIONS = 32


def loaded_numpy() -> Any:
    """Return numpy if somebody has imported it, else ``None``: then no value can be an array."""
    numpy = sys.modules.get("numpy")
    return numpy if hasattr(numpy, "ndarray") else None


def is_array(value: Any) -> bool:
    """Whether the value is a plain array. Subclasses may mean more than their items say, a mask for example."""
    numpy = loaded_numpy()
    return numpy is not None and type(value) in (numpy.ndarray, numpy.memmap)


def as_scalar(value: Any) -> Any:
    """Return the Python number behind a numpy scalar, or ``None`` when it is none that a payload can hold."""
    numpy = loaded_numpy()
    if numpy is None or not isinstance(value, numpy.generic):
        return None
    number = value.item()
    return number if type(number) in (bool, int, float) and value.dtype.kind in "biuf" else None


def content(array: np.ndarray[Any, Any]) -> memoryview:
    """Return the items of an array in C order, by reference where they lie so already."""
    if array.dtype.kind not in KINDS or not _DTYPE.fullmatch(array.dtype.str):
        raise CodecError(f"an array of {array.dtype} does not travel: its items must be numbers, times or bytes")
    flat = loaded_numpy().asarray(array, order="C").reshape(-1)
    return memoryview(flat.view("u1") if flat.size else b"").toreadonly()


def rebuild(dtype: Any, shape: Any, data: memoryview) -> Any:
    """Return an array over ``data``, which is read-only, without a copy.

    Raises:
        CodecError: The description is not one that `content` allows, or does not fit the data; or numpy is missing.
    """
    if not (isinstance(dtype, str) and _DTYPE.fullmatch(dtype) and _is_shape(shape)):
        raise CodecError("the payload describes an array of a kind that never travels")
    try:
        import numpy as np  # noqa: PLC0415 — only a payload with an array needs it
    except ImportError as error:
        raise CodecError("the payload holds an array: install numpy to read it (pip install numpy)") from error
    try:
        kind = np.dtype(dtype)
        if kind.str != dtype or kind.itemsize * math.prod(shape) != len(data):
            raise CodecError(f"an array of {dtype} and shape {shape} does not have {len(data)} bytes")
        return np.ndarray(tuple(shape), kind, buffer=data)
    except (TypeError, ValueError, OverflowError) as error:
        raise CodecError(f"the payload describes an impossible array: {error}") from error


def _is_shape(shape: Any) -> bool:
    return (
        isinstance(shape, list)
        and len(shape) <= _MAX_DIMENSIONS
        and all(type(side) is int and side >= 0 for side in shape)
    )
