"""What one AMQP message holds: chunks of one edge, each with its identity, and when they were sent.

A body is a version byte, the time of sending (seconds since 1970, a big-endian double), and a msgpack array of
entries. The array's header has a fixed width, so that entries encoded by many threads are joined without being looked
at.
"""

from __future__ import annotations

import itertools
import secrets
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from stagewire import ChunkKey, ChunkMessage, CodecError, Permanent, StageId
from stagewire.codec import decode, encode, join, weigh
from stagewire_rabbitmq.demux import Arrival
from stagewire_rabbitmq.options import MESSAGE_LIMIT

VERSION = 1
_ARRAY32 = 0xDD
_HEAD = struct.Struct(">BdBI")
_REMEMBERED = 65_536
_SMALL = 4_096


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """One chunk in a body: whose it is, which run of that request, and its encoded message."""

    request: str
    stage: StageId
    chunk: int
    run: int
    content: memoryview


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Entry])


def pack_entry(key: ChunkKey, run: int, message: ChunkMessage) -> bytes:
    """Encode one chunk. Raises `Permanent` when it cannot be encoded or is too large for one message."""
    try:
        content = join(encode(dict(message)))
    except CodecError as error:
        raise Permanent(f"chunk {key} cannot be encoded: {error}") from error
    if len(content) > MESSAGE_LIMIT:
        raise Permanent(
            f"chunk {key} has {len(content)} bytes and a message at most {MESSAGE_LIMIT}:"
            " let large payloads go by a KV backend (claim-check), or make smaller chunks"
        )
    return _ENCODER.encode(Entry(key.request, key.stage, key.chunk, run, memoryview(content)))


def join_entries(entries: Sequence[bytes], sent_at: float) -> bytes:
    """Make one body of encoded chunks."""
    return _HEAD.pack(VERSION, sent_at, _ARRAY32, len(entries)) + b"".join(entries)


def open_frame(body: bytes) -> tuple[list[Arrival], list[str]]:
    """Return the chunks of a body, and why some could not be decoded: those end their request with an error (TR-6).

    Raises:
        CodecError: The body as a whole is not one of ours.
    """
    try:
        version, sent_at, _array, _count = _HEAD.unpack_from(body)
        if version != VERSION:
            raise CodecError(f"frame version {version}: this side reads version {VERSION}; update the older side")
        entries = _DECODER.decode(memoryview(body)[_HEAD.size - 5 :])
    except (struct.error, msgspec.MsgspecError, RecursionError) as error:
        raise CodecError(f"not a stagewire frame: {error}") from error
    faults: list[str] = []
    return [_arrival(entry, sent_at, faults) for entry in entries], faults


def _arrival(entry: Entry, sent_at: float, faults: list[str]) -> Arrival:
    message: ChunkMessage
    try:
        message = decode(entry.content)
        _check(message)
    except CodecError as error:
        fault = f"chunk {entry.chunk} of request {entry.request!r} cannot be decoded: {error}"
        faults.append(fault)
        message = {"data": None, "finished": True, "error": fault}
    return Arrival((entry.stage, entry.request), entry.run, entry.chunk, message, sent_at)


def _check(message: object) -> None:
    if not isinstance(message, dict) or not {"data", "finished"} <= message.keys():
        raise CodecError("it is not a chunk message")


class Runs:
    """Draws a token for each run of each request that this process sends. Thread-safe."""

    def __init__(self, token: Callable[[], int] | None = None) -> None:
        start = secrets.randbits(42) << 20
        self._token = token or itertools.count(start).__next__
        self._lock = threading.Lock()
        self._current: OrderedDict[tuple[StageId, str], tuple[int, bool, ChunkMessage | None]] = OrderedDict()

    def token(self, key: ChunkKey, message: ChunkMessage) -> int:
        """Return the token of the run that this put belongs to; chunk 0 after a whole run begins the next one.

        A run of one chunk is told from a repeat of it by the message object, which is remembered if it is small.
        """
        name = (key.stage, key.request)
        with self._lock:
            token, ended, last = self._current.pop(name, (0, True, None))
            if not token or (ended and key.chunk == 0 and message is not last):
                token, ended, last = self._token(), False, None
            if message["finished"]:
                ended, last = True, message if key.chunk == 0 and weigh(message) <= _SMALL else None
            self._current[name] = (token, ended, last)
            if len(self._current) > _REMEMBERED:
                self._current.popitem(last=False)
            return token

    def forget(self, request: str) -> None:
        """Forget a request: its next chunk begins a run."""
        with self._lock:
            for name in [name for name in self._current if name[1] == request]:
                del self._current[name]
