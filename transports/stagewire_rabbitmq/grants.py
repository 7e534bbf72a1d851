"""What a consumer tells its senders: what is gone of a link or a mailbox, in one small message for many of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from stagewire import CodecError, StageId
from stagewire_rabbitmq.runs import Grant

Base = tuple[StageId, str, int, int]
"""(stage, request, run, base): nothing of the run below ``base`` is unread."""


class Told(msgspec.Struct, array_like=True, frozen=True):
    """What is told about one queue: bases of the runs of a link, or which batches of a mailbox were handled."""

    queue: str
    bases: Sequence[Base] = ()
    handled: Sequence[int] = ()


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Told)


def pack_grants(queue: str, grants: Iterable[Grant]) -> Mapping[str, bytes]:
    """Return a body for each sender; of several grants for one run the last counts."""
    latest = {(grant.to, grant.name, grant.run): grant.base for grant in grants}
    bases: dict[str, list[Base]] = {}
    for (to, (stage, request), run), base in latest.items():
        bases.setdefault(to, []).append((stage, request, run, base))
    return {to: _ENCODER.encode(Told(queue, mine)) for to, mine in bases.items()}


def pack_handled(queue: str, numbers: Sequence[int]) -> bytes:
    """Return a body that says which of a sender's batches were handled."""
    return _ENCODER.encode(Told(queue, handled=numbers))


def open_told(body: bytes) -> Told:
    """Decode a body. Raises `CodecError`."""
    try:
        return _DECODER.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CodecError(f"not a stagewire grant: {error}") from error
