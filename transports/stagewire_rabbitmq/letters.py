"""What one AMQP message of a mailbox holds: the messages of one batch, which arrive together or not at all."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from stagewire import CodecError, Message, Permanent
from stagewire.codec import decode, encode, join
from stagewire_rabbitmq.options import MESSAGE_LIMIT

VERSION = 1
_HEAD = struct.Struct(">Bdq")


class _Item(msgspec.Struct, array_like=True, frozen=True):
    headers: dict[str, str]
    content: memoryview


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[_Item])


class Batch(NamedTuple):
    """The messages of one AMQP message, when they were sent, and the number that their sender gave them."""

    messages: Sequence[Message]
    sent_at: float
    number: int


def pack_batch(messages: Sequence[Message], sent_at: float, number: int = 0) -> bytes:
    """Encode a batch. Raises `Permanent` when a payload cannot be encoded, or all together are too large."""
    try:
        body = _pack(messages, sent_at, number)
    except CodecError as error:
        raise Permanent(f"a message cannot be encoded: {error}") from error
    if len(body) > MESSAGE_LIMIT:
        raise Permanent(
            f"a batch of {len(body)} bytes is larger than one AMQP message may be ({MESSAGE_LIMIT}):"
            " put smaller batches, or let large payloads go by a KV backend (claim-check)"
        )
    return body


def pack_letter(message: Message, sent_at: float) -> bytes:
    """Encode one message that was received: it may be larger than what may be put, by its headers."""
    return _pack([message], sent_at, 0)


def open_batch(body: bytes) -> Batch:
    """Decode a batch. Raises `CodecError`."""
    try:
        version, sent_at, number = _HEAD.unpack_from(body)
        if version != VERSION:
            raise CodecError(f"batch version {version}: this side reads version {VERSION}; update the older side")
        items = _DECODER.decode(memoryview(body)[_HEAD.size :])
    except (struct.error, msgspec.MsgspecError, RecursionError) as error:
        raise CodecError(f"not a stagewire batch: {error}") from error
    return Batch([Message(decode(item.content), item.headers) for item in items], sent_at, number)


def _pack(messages: Sequence[Message], sent_at: float, number: int) -> bytes:
    items = [_Item(dict(m.headers), memoryview(join(encode(m.payload)))) for m in messages]
    return _HEAD.pack(VERSION, sent_at, number) + _ENCODER.encode(items)
