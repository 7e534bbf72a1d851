"""What one AMQP message of a mailbox holds: the messages of one batch, which arrive together or not at all."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from stagewire import CodecError, Message, Permanent
from stagewire.codec import decode, encode, join
from stagewire_rabbitmq.options import MESSAGE_LIMIT

VERSION = 1
_HEAD = struct.Struct(">Bd")


class _Item(msgspec.Struct, array_like=True, frozen=True):
    headers: dict[str, str]
    content: memoryview


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[_Item])


def pack_batch(messages: Sequence[Message], sent_at: float) -> bytes:
    """Encode a batch. Raises `Permanent` when a payload cannot be encoded, or all together are too large."""
    try:
        items = [_Item(dict(m.headers), memoryview(join(encode(m.payload)))) for m in messages]
    except CodecError as error:
        raise Permanent(f"a message cannot be encoded: {error}") from error
    body = _HEAD.pack(VERSION, sent_at) + _ENCODER.encode(items)
    if len(body) > MESSAGE_LIMIT:
        raise Permanent(
            f"a batch of {len(body)} bytes is larger than one AMQP message may be ({MESSAGE_LIMIT}):"
            " put smaller batches, or let large payloads go by a KV backend (claim-check)"
        )
    return body


def open_batch(body: bytes) -> tuple[list[Message], float]:
    """Decode a batch and when it was sent. Raises `CodecError`."""
    try:
        version, sent_at = _HEAD.unpack_from(body)
        if version != VERSION:
            raise CodecError(f"batch version {version}: this side reads version {VERSION}; update the older side")
        items = _DECODER.decode(memoryview(body)[_HEAD.size :])
    except (struct.error, msgspec.MsgspecError, RecursionError) as error:
        raise CodecError(f"not a stagewire batch: {error}") from error
    return [Message(decode(item.content), item.headers) for item in items], sent_at
