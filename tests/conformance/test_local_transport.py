"""The in-process transport keeps the promises of every transport."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from stagewire.testing.context import ManualClock
from stagewire.testing.suites import Ends, TransportSuite
from stagewire_local import LocalOptions, LocalTransport


class TestLocalTransport(TransportSuite):
    def transports(self) -> AbstractAsyncContextManager[Ends]:
        self.clock = ManualClock()
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Ends]:
        options = LocalOptions(
            request_chunks=self.limits.request_chunks,
            mailbox_messages=self.limits.mailbox_messages,
            redeliveries=self.limits.redeliveries,
            expires=self.limits.expires,
        )
        transport = LocalTransport(options, clock=self.clock)
        await transport.open()
        try:
            yield Ends(transport, transport)
        finally:
            await transport.close()

    async def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
