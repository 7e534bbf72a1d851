"""One lease for a whole controller."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stagewire import Closed, LeaseLost
from stagewire.leases import GENERAL, KeepaliveActor, SharedLease
from stagewire.testing import run_virtual


def make_shared(backend: Any, **options: Any) -> SharedLease:
    actor = KeepaliveActor(backend, clock=asyncio.get_running_loop().time, random_source=lambda: 0.0)
    return SharedLease(backend, actor, **options)


def test_ls5_any_number_of_concurrent_users_cause_one_grant(backend: Any) -> None:
    async def main() -> None:
        backend.grant_delay = 1
        shared = make_shared(backend)
        leases = await asyncio.gather(*(shared.acquire() for _ in range(50)))
        assert backend.grants == 1
        assert {lease.id for lease in leases} == {"lease-1"}
        assert leases[0].ttl == 180
        assert (await shared.acquire()).id == "lease-1"
        await shared.close()

    run_virtual(main())


def test_ls5_nothing_is_granted_before_it_is_needed(backend: Any) -> None:
    async def main() -> None:
        shared = make_shared(backend)
        await asyncio.sleep(100)
        assert backend.grants == 0
        await shared.close()

    run_virtual(main())


def test_ls5_cancelling_one_user_disturbs_no_other(backend: Any) -> None:
    async def main() -> None:
        backend.grant_delay = 1
        shared = make_shared(backend)
        first, second = (asyncio.ensure_future(shared.acquire()) for _ in range(2))
        await asyncio.sleep(0.5)
        first.cancel()
        assert (await second).id == "lease-1"
        assert first.cancelled()
        await shared.close()

    run_virtual(main())


def test_ls5_its_failure_is_told_to_all_and_is_final(backend: Any) -> None:
    async def main() -> None:
        shared = make_shared(backend)
        told: list[tuple[str | None, float]] = []
        now = asyncio.get_running_loop().time
        shared.subscribe(lambda lease, _cause: told.append((getattr(lease, "id", None), now())))
        await shared.acquire()
        backend.failure = ConnectionError("down")
        await asyncio.sleep(200)
        assert told == [("lease-1", 60)]
        backend.failure = None
        with pytest.raises(LeaseLost, match=r"failed before.*ConnectionError"):
            await shared.acquire()
        assert backend.grants == 1
        await shared.close()

    run_virtual(main())


def test_ls5_a_grant_that_fails_is_a_failure_too(backend: Any) -> None:
    async def main() -> None:
        backend.grant_failure = ConnectionError("no server")
        shared = make_shared(backend)
        told: list[Any] = []
        shared.subscribe(lambda lease, _cause: told.append(lease))
        with pytest.raises(LeaseLost, match=r"no lease could be had.*no server"):
            await shared.acquire()
        assert told == [None]
        with pytest.raises(LeaseLost, match="failed before"):
            await shared.acquire()
        await shared.close()

    run_virtual(main())


def test_ls5_a_grant_without_an_answer_fails_in_time(backend: Any) -> None:
    async def main() -> None:
        backend.grant_delay = 10_000
        shared = make_shared(backend)
        with pytest.raises(LeaseLost, match="TimeoutError"):
            await shared.acquire()
        assert asyncio.get_running_loop().time() == 10
        await shared.close()

    run_virtual(main())


def test_ls5_one_that_is_not_sticky_grants_anew_under_a_new_generation(backend: Any) -> None:
    async def main() -> None:
        shared = make_shared(backend, policy=GENERAL, ttl=30, sticky=False)
        first = await shared.acquire()
        await backend.revoke(first)
        await asyncio.sleep(12)
        assert shared.current is None
        second = await shared.acquire()
        assert second.generation > first.generation
        await shared.close()

    run_virtual(main())


def test_ls5_closing_ends_the_keepalive_and_leaves_the_lease_to_its_ttl(backend: Any) -> None:
    async def main() -> None:
        shared = make_shared(backend)
        lease = await shared.acquire()
        await shared.close()
        await shared.close()
        await asyncio.sleep(300)
        assert backend.asked == []
        assert await backend.alive(lease)
        with pytest.raises(Closed):
            await shared.acquire()

    run_virtual(main())
