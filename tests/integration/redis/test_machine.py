"""Random operations against a model: the stores say what a dictionary with leases says."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from stagewire import Lease, LeaseLost
from stagewire.testing import Stores

pytestmark = pytest.mark.integration

KEYS = st.sampled_from(["a", "b", "ä*"])
SIZES = st.sampled_from([0, 1, 16_384, 16_385, 1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1, 2_500_000])


class StoreMachine(RuleBasedStateMachine):
    """One KV and one lease backend, and what they should hold."""

    stores: Stores
    client: Any
    runner: asyncio.Runner
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.client.flushall()
        self.values: dict[str, bytes] = {}
        self.owners: dict[str, str] = {}
        self.alive: set[str] = set()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        async def settled() -> Any:
            try:
                return await work
            finally:
                kv: Any = self.stores.kv
                await asyncio.gather(*kv._discarding)

        return self.runner.run(settled())

    def refused_when_ended(self, lease: Lease | None, work: Coroutine[Any, Any, Any]) -> bool:
        """Do the work; return whether the lease was alive, and so it was done."""
        if lease is None or lease.id in self.alive:
            self.do(work)
            return True
        with pytest.raises(LeaseLost):
            self.do(work)
        return False

    @rule(target=leases)
    def grant(self) -> Any:
        if len(self.alive) == 4:
            return multiple()
        lease = self.do(self.stores.lease.grant(600))
        self.alive.add(lease.id)
        return lease

    @rule(key=KEYS, size=SIZES, byte=st.binary(min_size=1, max_size=1), lease=st.none() | leases)
    def put(self, key: str, size: int, byte: bytes, lease: Lease | None) -> None:
        if self.refused_when_ended(lease, self.stores.kv.put(key, byte * size, lease)):
            self.values[key] = byte * size
            if lease is not None:
                self.owners[key] = lease.id

    @rule(key=KEYS, lease=leases)
    def attach(self, key: str, lease: Lease) -> None:
        if self.refused_when_ended(lease, self.stores.lease.attach(lease, key)):
            self.owners[key] = lease.id

    @rule(lease=leases)
    def keepalive(self, lease: Lease) -> None:
        self.refused_when_ended(lease, self.stores.lease.keepalive(lease))

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        assert self.do(self.stores.kv.delete(key)) == (key in self.values)
        self.values.pop(key, None)
        self.owners.pop(key, None)

    @rule(lease=leases)
    def revoke(self, lease: Lease) -> None:
        self.do(self.stores.lease.revoke(lease))
        self.end(lease)

    @rule(lease=leases)
    def run_out(self, lease: Lease) -> None:
        """Let the time pass at once for all that expires with the lease, as the server would."""
        if lease.id in self.alive:
            tied = [key for key, owner in self.owners.items() if owner == lease.id]
            names = [f"stagewire:{kind}:{lease.id}" for kind in ("lease", "tied")]
            for key in tied:
                names += [f"stagewire:{kind}:{key}" for kind in ("v", "o", "m")]
                names += self.client.lrange(f"stagewire:m:{key}", 0, -1)
            for name in names:
                assert self.client.pttl(name) > 0 or not self.client.exists(name), f"{name} never expires"
            self.client.delete(*names)
            self.end(lease)

    def end(self, lease: Lease) -> None:
        self.alive.discard(lease.id)
        for key in [key for key, owner in self.owners.items() if owner == lease.id]:
            del self.owners[key]
            self.values.pop(key, None)

    @invariant()
    def the_stores_hold_what_the_model_holds(self) -> None:
        assert self.do(self.stores.kv.keys()) == sorted(self.values)
        for key, value in self.values.items():
            holder = self.do(self.stores.kv.get(key))
            assert holder is not None
            assert holder.data == value

    @invariant()
    def nothing_else_is_on_the_server(self) -> None:
        parts = sum(-(-len(value) // 1_048_576) for value in self.values.values() if len(value) > 1_048_576)
        assert len(self.client.keys("stagewire:p:*")) == parts
        assert {name.rpartition(":")[2] for name in self.client.keys("stagewire:o:*")} == self.owners.keys()
        for name in self.client.keys("stagewire:[vm]:*"):
            tied = name.rpartition(":")[2] in self.owners
            assert (self.client.pttl(name) > 0) == tied, f"{name} expires if and only if it is tied"


@pytest.fixture
def machine(redis_url: str, opened: Any, peek: Any) -> Iterator[type[StoreMachine]]:
    with asyncio.Runner() as runner, peek(redis_url) as client:
        context = opened(redis_url)
        stores = runner.run(context.__aenter__())
        yield type("BoundMachine", (StoreMachine,), {"stores": stores, "client": client, "runner": runner})
        runner.run(context.__aexit__(None, None, None))


def test_ls1_the_stores_do_what_a_model_does(machine: type[StoreMachine]) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    limits = settings(
        max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=checks, database=None
    )
    run_state_machine_as_test(machine, settings=limits)
