"""What a consumer tells its senders: how much is gone of the runs of a link, in one small message for many of them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stagewire import CodecError, StageId
from stagewire_rabbitmq.runs import Grant


class Bases(msgspec.Struct, array_like=True, frozen=True):
    """The link (by its queue) and, for runs of it, ``(stage, request, run, base)``."""

    link: str
    bases: list[tuple[StageId, str, int, int]]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Bases)


def pack_grants(link: str, grants: Iterable[Grant]) -> dict[str, bytes]:
    """Return a body for each sender; of several grants for one run the last counts."""
    latest = {(grant.to, grant.name, grant.run): grant.base for grant in grants}
    bases: dict[str, list[tuple[StageId, str, int, int]]] = {}
    for (to, (stage, request), run), base in latest.items():
        bases.setdefault(to, []).append((stage, request, run, base))
    return {to: _ENCODER.encode(Bases(link, mine)) for to, mine in bases.items()}


def open_grants(body: bytes) -> Bases:
    """Decode what `pack_grants` made. Raises `CodecError`."""
    try:
        return _DECODER.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CodecError(f"not a stagewire grant: {error}") from error
