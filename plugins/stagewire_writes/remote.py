"""Asks an agent and returns what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from stagewire import INLINE, BatchTransport, Permanent, Retryable
from stagewire_writes.errors import AgentLost, FrameRefused
from stagewire_writes.presence import Node, mailbox_of
from stagewire_writes.protocol import INSTANCE, Head, data_of, opened_answer, request

T = TypeVar("T", bound=Head)


class Remote:
    """Calls agents through the mailboxes. Belongs to one event loop."""

    def __init__(self, batches: BatchTransport) -> None:
        self._batches = batches

    async def call(
        self, node: Node, op: str, head: Head, kind: type[T], *, timeout: float, data: Sequence[memoryview] = ()
    ) -> T:
        """Ask on the mailbox for what is answered soon. Large data may travel by claim.

        Raises:
            AgentLost: No answer in time; it may or may not have been done.
            WriteError: What the agent answered.
        """
        answer, _data = await self.fetch(node, op, head, kind, timeout=timeout, data=data)
        return answer

    async def fetch(
        self, node: Node, op: str, head: Head, kind: type[T], *, timeout: float, data: Sequence[memoryview] = ()
    ) -> tuple[T, list[memoryview]]:
        """Do what `call` does, and return the data of the answer too."""
        headers = {INSTANCE: node.instance}
        message = request(op, head, data, headers)
        try:
            reply = await self._batches.request(mailbox_of(node.export, node.name, "control"), message, timeout=timeout)
        except Retryable as error:
            raise AgentLost(f"agent {node.name!r} of export {node.export!r} does not answer: {error}") from error
        except Permanent as error:
            raise FrameRefused(f"a request to agent {node.name!r} cannot be sent: {error}") from error
        return opened_answer(reply.payload, kind), data_of(reply.payload)

    async def call_data(
        self, node: Node, op: str, head: Head, kind: type[T], *, timeout: float, data: Sequence[memoryview] = ()
    ) -> T:
        """Ask on the mailbox for what may wait; the data travel in the message itself, never by claim.

        Raises:
            Retryable: No answer in time, or it could not be sent now.
            WriteError: What the agent answered.
        """
        message = request(op, head, data, {INSTANCE: node.instance, INLINE: "1"})
        try:
            reply = await self._batches.request(mailbox_of(node.export, node.name, "data"), message, timeout=timeout)
        except Permanent as error:
            raise FrameRefused(f"frames for agent {node.name!r} cannot be sent: {error}") from error
        return opened_answer(reply.payload, kind)
