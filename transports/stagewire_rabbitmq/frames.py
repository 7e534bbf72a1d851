"""What one AMQP message holds: chunks of one edge, each with its identity, and when they were sent.

A body is a version byte, the time of sending (seconds since 1970, a big-endian double), and a msgpack array of
entries. The array's header has a fixed width, so that entries encoded by many threads are joined without being looked
at.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from stagewire import ChunkKey, ChunkMessage, CodecError, Permanent, StageId
from stagewire.codec import decode, encode, join
from stagewire_rabbitmq.options import MESSAGE_LIMIT
from stagewire_rabbitmq.runs import Arrival

VERSION = 1
_ARRAY32 = 0xDD
_HEAD = struct.Struct(">BdBI")


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """One chunk in a body: whose it is, which run of that request, and its encoded message; a mark has no bytes."""

    request: str
    stage: StageId
    chunk: int
    run: int
    content: memoryview


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Entry])


def encode_message(key: ChunkKey, message: ChunkMessage) -> bytes:
    """Encode one chunk's message. Raises `Permanent` when that cannot be done or it is too large for one body."""
    try:
        content = join(encode(dict(message)))
    except CodecError as error:
        raise Permanent(f"chunk {key} cannot be encoded: {error}") from error
    if len(content) > MESSAGE_LIMIT:
        raise Permanent(
            f"chunk {key} has {len(content)} bytes and a message at most {MESSAGE_LIMIT}:"
            " let large payloads go by a KV backend (claim-check), or make smaller chunks"
        )
    return content


def pack_entry(key: ChunkKey, run: int, content: bytes) -> bytes:
    """Add its identity to an encoded message; without content it is the mark of its run (see `outgoing`)."""
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
    message: ChunkMessage | None = None
    if entry.content:
        try:
            message = decode(entry.content)
            _check(message)
        except CodecError as error:
            fault = f"chunk {entry.chunk} of request {entry.request!r} cannot be decoded: {error}"
            faults.append(fault)
            message = {"data": None, "finished": True, "error": fault}
    return Arrival((entry.stage, entry.request), entry.run, entry.chunk, message, len(entry.content), sent_at)


def _check(message: object) -> None:
    if not isinstance(message, dict) or not {"data", "finished"} <= message.keys():
        raise CodecError("it is not a chunk message")
