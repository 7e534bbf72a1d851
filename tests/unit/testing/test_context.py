from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stagewire.testing import ManualClock, StubContext, stage_context
from stagewire_local import LocalTransport


def test_a_stub_context_shares_and_gives_what_the_test_put_in() -> None:
    clock, transport = ManualClock(5.0), LocalTransport()
    context = StubContext(pipeline="p", base=Path("/tmp"), clock=clock, backends={"transport": transport})
    clock.advance(2.5)
    assert (context.clock(), context.pipeline, context.base) == (7.5, "p", Path("/tmp"))
    assert context.transport() is transport
    made: list[int] = context.shared(("a", 1), list)
    assert context.shared(("a", 1), list) is made
    assert StubContext().shared(("a", 1), list) is not made


@pytest.mark.parametrize("name", ["transport", "kv", "lease"])
def test_a_stub_context_says_what_the_test_did_not_put_in(name: str) -> None:
    with pytest.raises(LookupError, match=f"the test gave the context no {name}"):
        getattr(StubContext(), name)()
    with pytest.raises(LookupError, match="no catalog"):
        StubContext().catalog  # noqa: B018 — the property raises


def test_a_stage_context_names_the_stage() -> None:
    context = stage_context("stage", 3)
    assert (context.stage, context.replica) == ("stage", 3)


PROGRAM = """
import sys
for name in ("pytest", "hypothesis"):
    sys.modules[name] = None
import asyncio
from stagewire.testing import run_virtual, TransportSuite, StageSuite, FaultPlan, no_leaks
run_virtual(asyncio.sleep(1000))
"""


def test_the_kit_works_without_pytest() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
