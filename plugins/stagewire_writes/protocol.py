"""What a controller and an agent say to each other.

A request is a message ``{"op", "head", "data"}``: the head is one of the structs below, the data are buffers, which are
never copied here. An answer is ``{"head", "data"}`` or ``{"error", "text"}``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from stagewire import Message
from stagewire_writes.errors import FrameRefused, WriteError, from_wire

T = TypeVar("T", bound="Head")

INSTANCE = "instance"
"""Header of a request: the agent process that it is meant for (WS-10)."""

KEY_PREFIX = "write-"
"""Begins every temporary key of a session's payload."""

MAX_OFFSET = 2**63 - 1


class Head(msgspec.Struct, frozen=True):
    """Base of what travels beside the data."""


class Ping(Head, frozen=True):
    """Asks an agent whether it lives and how the sessions of one controller are; keeps them from being reaped."""

    source: str = ""
    sessions: list[str] = []


class SessionState(Head, frozen=True):
    """How a session is at its agent: frames received, bytes written, and the code and text of its failure."""

    received: int
    written: int
    error: str = ""
    text: str = ""


class Pong(Head, frozen=True):
    """Which process serves the node, what it can do, and the sessions that it was asked for and has."""

    instance: str
    capabilities: list[str]
    sessions: dict[str, SessionState] = {}


class Open(Head, frozen=True):
    """Opens a session on a path; ``source`` is the controller's generation, which every later message carries."""

    path: str
    source: str
    create_parents: bool = False


class Opened(Head, frozen=True):
    """The new session."""

    session: str


class Frames(Head, frozen=True):
    """Consecutive frames of one submit: the data of a Raw message (WS-2)."""

    session: str
    source: str
    sequence: int
    offset: int
    lengths: list[int]
    checksums: list[int]

    def check(self, max_frame: int, max_frames: int) -> None:
        """Raise `FrameRefused` unless the frames agree with each other and with the bounds (WS-8)."""
        if not 0 < len(self.lengths) <= max_frames or len(self.lengths) != len(self.checksums):
            raise FrameRefused(f"{len(self.lengths)} frames with {len(self.checksums)} checksums: 1 to {max_frames}")
        if any(not 0 < length <= max_frame for length in self.lengths):
            raise FrameRefused(f"frames of {self.lengths} bytes: each has 1 to {max_frame}")
        if self.sequence < 0 or self.offset < 0 or self.offset + sum(self.lengths) > MAX_OFFSET:
            raise FrameRefused(f"frame {self.sequence} at offset {self.offset} does not fit into a file")


class Reference(Frames, frozen=True):
    """Consecutive frames whose bytes are one value of the KV backend (WS-8)."""

    key: str
    nonce: str
    generation: int


class Ack(Head, frozen=True):
    """Frames are queued, or were recognised as a repeat (WS-3); ``written`` is in bytes, of the session."""

    received: int
    written: int


class Barrier(Head, frozen=True):
    """Waits until the frames are written; the session goes on (WS-3)."""

    session: str
    source: str
    expected_frames: int


class Finalize(Head, frozen=True):
    """Waits until the frames are written, then ends the session with a file of ``final_size`` bytes (WS-3)."""

    session: str
    source: str
    expected_frames: int
    final_size: int
    checksum: int | None = None


class Abort(Head, frozen=True):
    """Ends a session without its file."""

    session: str
    source: str


class Written(Head, frozen=True):
    """A file as it was written. ``version`` tells it from every other file that was or will be at the path."""

    size: int
    mtime: float
    version: str


class SmallPut(Head, frozen=True):
    """Writes a whole file, the data, in one go (WS-13)."""

    path: str
    checksum: int
    create_parents: bool = True


class PathOf(Head, frozen=True):
    """Names a path: what to stat, to remove, to make a directory of."""

    path: str


class Entry(Head, frozen=True):
    """One file or directory."""

    name: str
    directory: bool
    size: int
    mtime: float
    version: str


class ListOf(Head, frozen=True):
    """Asks for the entries of a directory, in the order of their names, from after one on."""

    path: str
    after: str = ""
    limit: int = 1_000


class Listing(Head, frozen=True):
    """Entries, and whether there are more."""

    entries: list[Entry]
    more: bool


class Read(Head, frozen=True):
    """Asks for bytes of a file; with a ``version``, of that version only."""

    path: str
    offset: int
    length: int
    version: str = ""


class Chunk(Head, frozen=True):
    """Writes the data into a file at an offset, without a session (the path of agents that have none)."""

    path: str
    offset: int
    checksum: int


class Truncate(Head, frozen=True):
    """Sets the length of a file, making it where it is missing."""

    path: str
    size: int


class Rename(Head, frozen=True):
    """Moves a file within the export, replacing what is there."""

    path: str
    to: str


class Concatenate(Head, frozen=True):
    """Makes one file of several, in order, on the agent's host; the parts stay."""

    path: str
    parts: list[str]


class Done(Head, frozen=True):
    """Answers a request that has nothing to tell."""


def request(op: str, head: Head, data: Sequence[Any] = (), headers: Mapping[str, str] | None = None) -> Message:
    """Return a request as a message."""
    return Message({"op": op, "head": msgspec.to_builtins(head), "data": list(data)}, headers or {})


def answer(head: Head, data: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the payload of an answer."""
    return {"head": msgspec.to_builtins(head), "data": list(data)}


def refusal(error: WriteError) -> dict[str, Any]:
    """Return the payload of an answer that is an error."""
    return {"error": error.code, "text": str(error)}


def operation(payload: Any) -> str:
    """Return the name of what is asked for. Raises `FrameRefused`."""
    if not isinstance(payload, dict) or not isinstance(op := payload.get("op"), str):
        raise FrameRefused("the message is no request of this protocol: do both sides have the same version?")
    return op


def head_of(payload: Mapping[str, Any], kind: type[T]) -> T:
    """Return the head of a request or an answer. Raises `FrameRefused`."""
    try:
        return msgspec.convert(payload["head"], kind)
    except (KeyError, msgspec.ValidationError) as error:
        raise FrameRefused(f"the message is no {kind.__name__}: {error}") from error


def data_of(payload: Mapping[str, Any]) -> list[memoryview]:
    """Return the buffers of a request or an answer. Raises `FrameRefused`."""
    try:
        return [memoryview(each).cast("B") if len(each) else memoryview(b"") for each in payload["data"]]
    except (KeyError, TypeError) as error:
        raise FrameRefused(f"the message has no data: {error}") from error


def opened_answer(payload: Any, kind: type[T]) -> T:
    """Return the head of an answer; raises the error that it carries."""
    if not isinstance(payload, dict):
        raise FrameRefused("the answer is none of this protocol: do both sides have the same version?")
    if "error" in payload:
        raise from_wire(str(payload["error"]), str(payload.get("text", "")))
    return head_of(payload, kind)


def key_of(frames: Frames, nonce: str, generation: int) -> str:
    """Return the temporary key of a payload: both sides compute it from the reference (WS-8)."""
    numbers = struct.pack(f"<qqQ{len(frames.lengths)}Q", frames.sequence, frames.offset, generation, *frames.lengths)
    text = f"{frames.session}\0{frames.source}\0{nonce}".encode()
    return KEY_PREFIX + blake2b(numbers + text, digest_size=20).hexdigest()
