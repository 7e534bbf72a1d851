"""One reader for each replica (OR-3): it carries outputs to the ready queue, and looks at nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stagewire import describe
from stagewire_orchestrator.ready import ReadyQueue
from stagewire_orchestrator.replicas import Replica
from stagewire_orchestrator.tasks import own_task


class Reader:
    """Reads one replica until it is cancelled or the client fails; its own end is an event like any other (OR-11).

    Args:
        replica: What it reads.
        ready: The dispatcher's queue.
        on_outputs: What the dispatcher does with outputs.
        on_lost: What the dispatcher does when the reader ends.
    """

    def __init__(
        self,
        replica: Replica,
        ready: ReadyQueue,
        on_outputs: Callable[..., None],
        on_lost: Callable[[Replica, str], None],
    ) -> None:
        self._replica = replica
        self._ready = ready
        self._on_outputs = on_outputs
        self._on_lost = on_lost

    async def run(self) -> None:
        """Work until cancelled, or until the client fails."""
        try:
            await self._carry()
        except asyncio.CancelledError:
            if own_task().cancelling():
                raise
            self._ready.post(self._on_lost, self._replica, "get_output was cancelled from inside")
        except Exception as error:  # noqa: BLE001 — a client may raise anything
            self._ready.post(self._on_lost, self._replica, f"get_output: {describe(error)}")

    async def _carry(self) -> None:
        replica, ready, get = self._replica, self._ready, self._replica.client.get_output
        while True:
            outputs = await get()
            if replica.held:
                await replica.unheld()
            if outputs:
                ready.post_outputs(self._on_outputs, replica, outputs)
            else:
                await asyncio.sleep(0)  # a client that returns nothing at once must not starve the loop
            if ready.full:
                await ready.room()
