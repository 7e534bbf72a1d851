"""Random operations in several processes, some of which are killed, against a model of the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from stagewire import Lease, LeaseLost

from .peer import Peer

pytestmark = [pytest.mark.integration, pytest.mark.slow]

KEYS = st.sampled_from(["a", "b", "ä"])
SIZES = st.sampled_from([0, 1, 4096, 4097, 70_000, 1_000_000])
PEERS = st.integers(0, 1)


class StoreMachine(RuleBasedStateMachine):
    """Two processes on one store, and what it should hold."""

    peers: list[Peer]
    directory: Path
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, bytes] = {}
        self.owners: dict[str, int] = {}
        self.alive: dict[int, Lease] = {}
        self.held: list[dict[str, bytes]] = [{} for _ in self.peers]
        self.count = 0

    def refused_when_ended(self, lease: Lease | None, peer: int, name: str, *arguments: Any) -> bool:
        """Ask the peer; return whether the lease was alive, and so it was done."""
        if lease is None or lease.generation in self.alive:
            self.peers[peer].ask(name, *arguments)
            return True
        with pytest.raises(LeaseLost):
            self.peers[peer].ask(name, *arguments)
        return False

    @rule(target=leases, peer=PEERS)
    def grant(self, peer: int) -> Any:
        if len(self.alive) == 3:
            return multiple()
        lease = self.peers[peer].ask("grant", 600.0)
        self.alive[lease.generation] = lease
        return lease

    @rule(peer=PEERS, key=KEYS, size=SIZES, byte=st.binary(min_size=1, max_size=1), lease=st.none() | leases)
    def put(self, peer: int, key: str, size: int, byte: bytes, lease: Lease | None) -> None:
        if self.refused_when_ended(lease, peer, "put", key, byte * size, lease):
            self.values[key] = byte * size
            if lease is not None:
                self.owners[key] = lease.generation

    @rule(peer=PEERS, key=KEYS)
    def hold(self, peer: int, key: str) -> None:
        self.count += 1
        assert self.peers[peer].ask("hold", str(self.count), key) == (key in self.values)
        if key in self.values:
            self.held[peer][str(self.count)] = self.values[key]

    @rule(peer=PEERS)
    def let_go(self, peer: int) -> None:
        if self.held[peer]:
            name, _ = self.held[peer].popitem()
            self.peers[peer].ask("let_go", name)

    @rule(peer=PEERS, key=KEYS, lease=leases)
    def attach(self, peer: int, key: str, lease: Lease) -> None:
        if self.refused_when_ended(lease, peer, "attach", lease, key):
            self.owners[key] = lease.generation

    @rule(peer=PEERS, lease=leases)
    def keepalive(self, peer: int, lease: Lease) -> None:
        self.refused_when_ended(lease, peer, "keepalive", lease)

    @rule(peer=PEERS, key=KEYS)
    def delete(self, peer: int, key: str) -> None:
        assert self.peers[peer].ask("delete", key) == (key in self.values)
        self.values.pop(key, None)
        self.owners.pop(key, None)

    @rule(peer=PEERS, lease=leases)
    def revoke(self, peer: int, lease: Lease) -> None:
        self.peers[peer].ask("revoke", lease)
        self.alive.pop(lease.generation, None)
        for key in [key for key, owner in self.owners.items() if owner == lease.generation]:
            del self.owners[key]
            self.values.pop(key, None)

    @rule(peer=PEERS)
    def kill(self, peer: int) -> None:
        """A killed process takes its holders with it, and nothing else."""
        self.count += 1
        if self.count % 4 == 0:
            self.peers[peer].kill()
            self.held[peer].clear()
            self.peers[peer] = Peer(self.directory)

    @invariant()
    def the_store_holds_what_the_model_holds(self) -> None:
        for peer in self.peers:
            assert peer.ask("keys") == sorted(self.values)
            assert {key: peer.ask("read", key) for key in self.values} == self.values

    @invariant()
    def what_is_held_does_not_change(self) -> None:
        for peer, held in zip(self.peers, self.held, strict=True):
            assert {name: peer.ask("held", name) for name in held} == held

    def teardown(self) -> None:
        for peer, held in zip(self.peers, self.held, strict=True):
            for name in held:
                peer.ask("let_go", name)
        for key in self.values:
            self.peers[0].ask("delete", key)
        for lease in self.alive.values():
            self.peers[0].ask("revoke", lease)


@pytest.fixture
def machine(shm: Path) -> Iterator[type[StoreMachine]]:
    peers = [Peer(shm), Peer(shm)]
    yield type("BoundMachine", (StoreMachine,), {"peers": peers, "directory": shm})
    for peer in peers:
        peer.kill()


def test_ls1_several_processes_do_what_a_model_does(machine: type[StoreMachine]) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    limits = settings(
        max_examples=6, stateful_step_count=20, deadline=None, suppress_health_check=checks, database=None
    )
    run_state_machine_as_test(machine, settings=limits)
