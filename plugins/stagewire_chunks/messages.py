"""The messages that travel, and what an error means for them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from stagewire import ChunkMessage, Closed, CodecError, Permanent, TransportFull


def chunk_message(data: Any, *, finished: bool) -> ChunkMessage:
    """Return a chunk; with ``finished`` the END of its request (CH-5)."""
    return {"data": data, "finished": finished}


def cancel_message() -> ChunkMessage:
    """Return the CANCEL terminal of a request whose caller put no final of its own (CH-18)."""
    return {"data": None, "finished": True, "cancelled": True}


def error_message(text: str) -> ChunkMessage:
    """Return the ERROR terminal (CH-15, CH-16)."""
    return {"data": None, "finished": True, "error": text}


class Fault(Enum):
    """What an exception of a transport says about trying again."""

    FULL = auto()
    """It did not arrive, and will once there is room: back-pressure."""
    UNSURE = auto()
    """It may have arrived, and trying again may help."""
    HOPELESS = auto()
    """Trying again cannot help."""


def fault_of(error: Exception) -> Fault:
    """Classify what a transport raised; an exception that is not of this package may be anything."""
    if isinstance(error, TransportFull):
        return Fault.FULL
    return Fault.HOPELESS if isinstance(error, Permanent | CodecError | Closed) else Fault.UNSURE


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why an attempt to send a chunk failed: in which act, and what that says about trying again."""

    fault: Fault
    error: Exception
    what: str


def drop_traces(error: BaseException | None) -> None:
    """Remove the traces of an error and of what it came from: a report must not keep the payloads in their frames."""
    for _ in range(100):  # a chain may be a circle
        if error is None:
            break
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
