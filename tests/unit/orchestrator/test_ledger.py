"""Who touches the ledger, and what comes too late for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stagewire.testing import run_virtual
from stagewire_orchestrator import Orchestrator
from stagewire_orchestrator.testing import ScriptedClient, take_all


class WatchedLedger(dict[str, Any]):
    """Notes the task that touches it."""

    def __init__(self) -> None:
        super().__init__()
        self.touched_by: set[str] = set()

    def _note(self) -> None:
        task = asyncio.current_task()
        self.touched_by.add(task.get_name() if task is not None else "a callback")

    def __setitem__(self, key: str, value: Any) -> None:
        self._note()
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self._note()
        super().__delitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._note()
        return super().get(key, default)


def test_or4_only_the_dispatcher_and_the_registering_handler_touch_the_ledger() -> None:
    async def main() -> None:
        stages = [ScriptedClient() for _ in range(3)]
        orchestrator = Orchestrator(stages, lambda _stage, _prompt, collected: collected, {0, 2})
        ledger = orchestrator._ledger = WatchedLedger()
        object.__setattr__(orchestrator._engine._shared, "ledger", ledger)
        orchestrator._engine._dispatcher._ledger = ledger
        await orchestrator.start()
        await orchestrator.add_request("r1", "hi there")
        await orchestrator.add_request("r2", "to be aborted")
        for stage in stages:
            stage.put("r1", "data", True)
        await take_all(orchestrator)
        await orchestrator.abort("r2")
        await orchestrator.shutdown()
        assert ledger.touched_by == {"handler", "dispatcher"}

    run_virtual(main())


@pytest.mark.parametrize("error", [None, ValueError("the stage failed")], ids=["END", "ERROR"])
def test_or6_what_comes_after_the_end_is_counted_and_revives_nothing(error: Exception | None) -> None:
    async def main() -> None:
        stage = ScriptedClient()
        orchestrator = Orchestrator([stage], lambda _stage, _prompt, collected: collected, {0})
        await orchestrator.start()
        await orchestrator.add_request("r1", "hi there")
        stage.put("r1", "last", True, error=error)
        assert (await orchestrator.next_output(1)).finished
        stage.put("r1", "late")
        stage.put("r1", "later", True)
        with pytest.raises(TimeoutError):
            await orchestrator.next_output(1)
        assert orchestrator.dropped_outputs == 2
        assert not orchestrator.request_states
        await orchestrator.shutdown()

    run_virtual(main())
