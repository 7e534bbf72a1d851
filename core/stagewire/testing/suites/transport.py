"""What the suites of both faces share: how a subclass says which transport to test, and within which bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from stagewire.spec.transport import ChunkKey, ChunkLink, ChunkMessage, ChunkTransport, Transport
from stagewire.testing.suites.base import Suite, scenario

T = TypeVar("T")
H = TypeVar("H", bound="TransportHarness")

SOURCE, TARGET = "up", "down"


class Ends(NamedTuple):
    """The same transport as the producer's process has it and as the consumer's has it; both open."""

    sender: Transport
    receiver: Transport


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """The bounds with which the subclass builds its transports. Small ones make quick tests.

    Attributes:
        request_chunks: At most so many chunks of a request that nobody reads are taken before ``put`` refuses one.
        mailbox_messages: At most so many messages that nobody takes are taken before ``put_batch`` waits.
        redeliveries: So often a message is delivered again before it is dead.
        expires: Seconds after which the chunks of a request that nobody asks for are dropped.
        silent_requests: Requests with unread chunks that must not stall the next.
        large: Bytes of a payload that is large for this transport.
    """

    request_chunks: int = 8
    mailbox_messages: int = 8
    redeliveries: int = 2
    expires: float = 1.0
    silent_requests: int = 1_000
    large: int = 2 * 1024 * 1024


class TransportHarness(Suite):
    """What a subclass overrides: `transports`, and where they differ ``limits`` and `advance`."""

    limits: ClassVar[TransportLimits] = TransportLimits()

    def transports(self) -> AbstractAsyncContextManager[Ends]:
        """Open both ends with the bounds of ``limits``, and close them after the block.

        Where the transport works inside one process only, the two are one object.
        """
        raise NotImplementedError("override transports()")

    def faces(self, ends: Ends, edge: str | None = None) -> tuple[ChunkTransport, ChunkTransport]:
        """Return the sending and the receiving face of a new edge."""
        edge = edge or self.unique("edge")
        receiver = ends.receiver.chunks(ChunkLink(edge, SOURCE, TARGET, role="receive"))
        return ends.sender.chunks(ChunkLink(edge, SOURCE, TARGET, role="send")), receiver

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call a method of a blocking face, which may wait for the network."""
        return await asyncio.to_thread(function, *args)

    async def receive(self, face: ChunkTransport, key: ChunkKey) -> ChunkMessage:
        """Return the chunk once it has arrived."""
        message = await self.eventually(lambda: face.get(key), f"chunk {key!r} arrives")
        assert message is not None
        return message

    async def receive_run(self, face: ChunkTransport, request: str, count: int) -> list[Any]:
        """Return what the first ``count`` chunks of a request hold."""
        return [(await self.receive(face, key(request, number)))["data"] for number in range(count)]

    async def stays_empty(self, face: ChunkTransport, absent: ChunkKey) -> None:
        """Fail when the chunk arrives within a moment."""
        assert face.get(absent) is None, f"{absent!r} must not be there"
        await asyncio.sleep(self.moment)
        assert face.get(absent) is None, f"{absent!r} must not arrive"


def over_transports(test: Callable[[H, Ends], Awaitable[None]]) -> Callable[[H], None]:
    """Make a test of a coroutine method that takes both ends."""
    return scenario(test, lambda suite: suite.transports())


def key(request: str, chunk: int) -> ChunkKey:
    """Return the key of a chunk that the source stage puts."""
    return ChunkKey(request, SOURCE, chunk)


def chunk(data: Any, *, finished: bool = False) -> ChunkMessage:
    """Return a chunk's message."""
    return {"data": data, "finished": finished}
