"""The reconnect suite passes a transport that survives a cut, and finds one that does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar

import pytest

from stagewire import ChunkKey, Retryable
from stagewire.testing import Ends, Fault, FaultPlan, ReconnectSuite, with_faults
from stagewire_local import LocalTransport


def is_mailbox(subject: ChunkKey | str) -> bool:
    """A chunk's get looks only at what has arrived, so a cut does not fail it."""
    return not isinstance(subject, ChunkKey)


class TestSurvivor(ReconnectSuite):
    """A cut here: whatever is tried next fails, before or after it took effect."""

    moment: ClassVar[float] = 0.005
    patience: ClassVar[float] = 0.5
    loses: ClassVar[bool] = False

    def transports(self) -> AbstractAsyncContextManager[Ends]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Ends]:
        self.plan = FaultPlan()
        transport = with_faults(LocalTransport(), self.plan)
        await transport.open()
        yield Ends(transport, transport)
        await transport.close()

    async def interrupt(self, ends: Ends) -> None:
        if self.loses:
            self.plan.add(Fault.DROP)
        self.plan.add(Fault.FAIL, times=2).add(Fault.FAIL_AFTER).add(Fault.FAIL, on="get", when=is_mailbox)


@pytest.mark.parametrize("test", ["chunks_put_before_during_and_after_a_cut_arrive_once", "messages_survive_a_cut"])
def test_tr7_the_suite_finds_a_loss(test: str) -> None:
    class Loses(TestSurvivor):
        loses: ClassVar[bool] = True

    with pytest.raises((AssertionError, TimeoutError, Retryable)):
        getattr(Loses(), f"test_tr7_{test}")()


def test_tr7_what_must_be_overridden_says_so() -> None:
    with pytest.raises(NotImplementedError, match="transports"):
        ReconnectSuite().transports()
