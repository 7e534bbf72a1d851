"""The store suites find what is broken: each of these breaks one promise, and the named test must fail for it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, TypeVar

import pytest

from stagewire import Buffer, Holder, Lease, LeaseLost, ViewHolder
from stagewire.testing import KVBackendSuite, LeaseBackendSuite, Stores, run_virtual
from stagewire_memory import LeaseTable, MemoryKV, MemoryKVOptions, MemoryLease

T = TypeVar("T")


class Impatient(KVBackendSuite, LeaseBackendSuite):
    """Both suites over the in-memory backends, which a subclass breaks."""

    patience: ClassVar[float] = 3.0
    large: ClassVar[int] = 4096
    kv: ClassVar[type[MemoryKV]] = MemoryKV
    lease: ClassVar[type[MemoryLease]] = MemoryLease

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return run_virtual(main)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def stores(self) -> AbstractAsyncContextManager[Stores]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Stores]:
        table = LeaseTable(asyncio.get_running_loop().time)
        yield Stores(self.kv(MemoryKVOptions(), table), self.lease(table))


class KeepsReferences(MemoryKV):
    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        await super().put(key, value, lease)
        self._values[key] = value  # type: ignore[assignment]


class CutsValues(MemoryKV):
    async def get(self, key: str) -> Holder | None:
        value = self._values.get(key)
        return None if value is None else ViewHolder(value[:1000])


class NeverNone(MemoryKV):
    async def get(self, key: str) -> Holder | None:
        return await super().get(key) or ViewHolder(b"")


class DeletesTwice(MemoryKV):
    async def delete(self, key: str) -> bool:
        await super().delete(key)
        return True


class ListsAll(MemoryKV):
    async def keys(self, prefix: str = "") -> list[str]:
        return await super().keys()


class TiedHolder(ViewHolder):
    def release(self) -> None:
        self.data.release()


class HandsOutTiedHolders(MemoryKV):
    async def get(self, key: str) -> Holder | None:
        value = self._values.get(key)
        return None if value is None else TiedHolder(value)


class TakesAnySize(MemoryKV):
    def _check_room(self, key: str, value: Buffer) -> None:
        pass


class ShowsHalf(MemoryKV):
    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        await super().put(key, bytes(value)[:1000], lease)
        await asyncio.sleep(0)
        await super().put(key, value, lease)


class NeverCloses(MemoryKV):
    async def close(self) -> None:
        pass


class IgnoresLeases(MemoryKV):
    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        await super().put(key, value)


class ForgetsTheTie(MemoryKV):
    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        self._leases.untie(key)
        await super().put(key, value, lease)


class KeepsTheTie(MemoryKV):
    async def delete(self, key: str) -> bool:
        return self._drop(key)


class ChecksAfterwards(MemoryKV):
    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        await super().put(key, value)
        if lease is not None:
            self._leases.tie(lease, key)


class SameGeneration(MemoryLease):
    async def grant(self, ttl: float) -> Lease:
        return dataclasses.replace(await super().grant(ttl), generation=1)


class IgnoresGenerations(MemoryLease):
    async def keepalive(self, lease: Lease) -> Lease:
        return await super().keepalive(dataclasses.replace(lease, generation=int(lease.id.split("-")[1])))


class TooLong(MemoryLease):
    async def grant(self, ttl: float) -> Lease:
        lease = await super().grant(ttl)
        return dataclasses.replace(lease, expires_at=lease.expires_at + 0.5)


class NeverExtends(MemoryLease):
    async def keepalive(self, lease: Lease) -> Lease:
        self._table.require(lease)
        return dataclasses.replace(lease, expires_at=lease.expires_at + 0.001)


class Revives(MemoryLease):
    async def keepalive(self, lease: Lease) -> Lease:
        try:
            return await super().keepalive(lease)
        except LeaseLost:
            return await self.grant(lease.ttl)


class RevokesLater(MemoryLease):
    async def revoke(self, lease: Lease) -> None:
        pass


class RevokesOnce(MemoryLease):
    async def revoke(self, lease: Lease) -> None:
        self._table.require(lease)
        self._table.revoke(lease)


class TakesAnyTTL(MemoryLease):
    async def grant(self, ttl: float) -> Lease:
        return self._table.grant(ttl)


class CloseEndsLeases(MemoryLease):
    async def close(self) -> None:
        await super().close()
        for record in list(self._table._records.values()):
            self._table._end(record)


BROKEN: list[tuple[str, type[MemoryKV | MemoryLease]]] = [
    ("kv_large_values_come_back_whole", CutsValues),
    ("kv_a_put_copies_what_could_change", KeepsReferences),
    ("kv_an_absent_key_is_none", NeverNone),
    ("kv_delete_removes_once", DeletesTwice),
    ("kv_keys_are_listed_by_prefix", ListsAll),
    ("tk4_a_holder_outlives_its_key", HandsOutTiedHolders),
    ("kv_a_value_that_is_too_large_is_refused", TakesAnySize),
    ("kv_a_cancelled_put_shows_all_or_nothing", ShowsHalf),
    ("kv_a_closed_backend_says_so", NeverCloses),
    ("ls1_a_value_vanishes_when_its_lease_is_revoked", IgnoresLeases),
    ("ls1_a_value_vanishes_when_its_lease_is_revoked", RevokesLater),
    ("ls1_a_value_vanishes_when_its_lease_runs_out", IgnoresLeases),
    ("ls1_a_value_stays_while_its_lease_is_kept_alive", NeverExtends),
    ("ls1_the_last_lease_of_a_value_decides", ForgetsTheTie),
    ("ls1_an_attached_key_vanishes_and_a_deleted_one_is_free", ForgetsTheTie),
    ("ls1_an_attached_key_vanishes_and_a_deleted_one_is_free", KeepsTheTie),
    ("ls7_an_ended_lease_writes_nothing", ChecksAfterwards),
    ("ls7_a_revoked_lease_writes_nothing", ChecksAfterwards),
    ("ls1_validity_counts_from_before_the_request", TooLong),
    ("ls1_keepalive_extends_from_now", NeverExtends),
    ("ls1_a_lost_lease_never_comes_back", Revives),
    ("ls1_revoke_ends_a_lease_at_once_and_is_idempotent", RevokesLater),
    ("ls1_revoke_ends_a_lease_at_once_and_is_idempotent", RevokesOnce),
    ("ls7_generations_increase", SameGeneration),
    ("ls7_another_generation_has_no_rights", IgnoresGenerations),
    ("ls1_a_ttl_must_be_positive", TakesAnyTTL),
    ("ls1_leases_outlive_the_connection", CloseEndsLeases),
]


@pytest.mark.parametrize(
    ("test", "broken"), BROKEN, ids=lambda value: value if isinstance(value, str) else value.__name__
)
def test_the_store_suites_find(test: str, broken: type[Any]) -> None:
    class Broken(Impatient):
        kv: ClassVar[type[MemoryKV]] = broken if issubclass(broken, MemoryKV) else MemoryKV
        lease: ClassVar[type[MemoryLease]] = broken if issubclass(broken, MemoryLease) else MemoryLease

    getattr(Impatient(), f"test_{test}")()
    with pytest.raises(Exception):  # noqa: B017 — an assertion, or whatever the broken one raises
        getattr(Broken(), f"test_{test}")()
