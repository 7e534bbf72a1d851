"""Connections that send a large command in slices: asyncio copies what it is given whole, up to three times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from stagewire import Buffer

SLICE = 256 * 1024
"""Bytes that are handed to the socket at once: few enough for their memory to be used again by the next slice."""


def slicing(base: type[Any]) -> type[Any]:
    """Return the connection class with large commands sent in slices."""

    class SlicingConnection(base):  # type: ignore[misc] # whichever the url asks for: TCP, TLS or a Unix socket
        async def send_packed_command(self, command: Any, check_health: Any = True) -> None:  # noqa: FBT002 — redis-py calls it so
            """Send a command; a failure or a cancel closes the connection, so none goes on after a part of another."""
            if isinstance(command, str | bytes):
                await super().send_packed_command(command, check_health)
                return
            for pieces in slices(command):
                await super().send_packed_command(pieces, check_health)
                check_health = False

    return SlicingConnection


def slices(pieces: Iterable[Buffer]) -> Iterator[list[Buffer]]:
    """Yield the pieces in groups of `SLICE` bytes at most, large ones cut without a copy."""
    group: list[Buffer] = []
    size = 0
    for piece in pieces:
        view = memoryview(piece)
        for at in range(0, len(view), SLICE):
            part = view[at : at + SLICE]
            if size + len(part) > SLICE:
                yield group
                group, size = [], 0
            group.append(part)
            size += len(part)
    if group:
        yield group
