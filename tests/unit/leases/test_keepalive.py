"""The keepalive actor in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stagewire import Lease
from stagewire.leases import GENERAL, SHARED, KeepaliveActor, KeepalivePolicy
from stagewire.testing import SweepRun, run_virtual, sweep_cancels

Losses = list[tuple[float, str, str]]
NoteLoss = Callable[[Lease, Exception], None]

QUICK = KeepalivePolicy(
    cadence=3, cadence_share=0, jitter=0, backend_timeout=1, timeout=1.5, concurrency=2, retry_after=0.5
)


def make_actor(backend: Any, jitter: float = 0.0) -> KeepaliveActor:
    return KeepaliveActor(backend, clock=asyncio.get_running_loop().time, random_source=lambda: jitter)


def test_ls2_a_lease_is_renewed_at_its_cadence_counted_from_the_last_success(backend: Any, note_loss: NoteLoss) -> None:
    async def main() -> None:
        backend.delay = 0.25
        actor = make_actor(backend)
        registration = actor.register(await backend.grant(20), QUICK, on_lost=note_loss)
        await asyncio.sleep(10)
        assert [when for when, _ in backend.asked] == [3, 6.25, 9.5]
        assert registration.lease.expires_at == 9.5 + 20
        await actor.close()

    run_virtual(main())


def test_ls3_the_shared_policy_adds_its_jitter(backend: Any, note_loss: NoteLoss) -> None:
    async def main() -> None:
        actor = make_actor(backend, jitter=0.5)
        actor.register(await backend.grant(180), SHARED, on_lost=note_loss)
        await asyncio.sleep(130)
        assert [when for when, _ in backend.asked] == [62.5, 125]
        await actor.close()

    run_virtual(main())


def test_ls2_at_most_so_many_operations_are_under_way_and_one_per_lease(backend: Any, note_loss: NoteLoss) -> None:
    async def main() -> None:
        backend.delay = 0.9
        actor = make_actor(backend)
        for _ in range(5):
            actor.register(await backend.grant(30), QUICK, on_lost=note_loss)
        await asyncio.sleep(6)
        assert backend.most_under_way == QUICK.concurrency
        assert sorted(lease for _, lease in backend.asked) == [f"lease-{number}" for number in range(1, 6)]
        assert [when for when, _ in backend.asked] == [3, 3, 3.9, 3.9, pytest.approx(4.8)]
        await actor.close()

    run_virtual(main())


def test_ls3_a_failure_is_tried_again_after_the_policy_s_time(
    backend: Any, note_loss: NoteLoss, losses: Losses
) -> None:
    async def main() -> None:
        backend.failure = ConnectionError("down")
        actor = make_actor(backend)
        actor.register(await backend.grant(30), GENERAL, on_lost=note_loss)
        await asyncio.sleep(11.25)
        assert [when for when, _ in backend.asked] == [pytest.approx(t) for t in (11, 11.1, 11.2)]
        backend.failure = None
        await asyncio.sleep(1)
        assert actor.stats.renewals == 1
        assert losses == []
        await actor.close()

    run_virtual(main())


def test_ls3_without_retry_a_failure_gives_the_lease_up(backend: Any, note_loss: NoteLoss, losses: Losses) -> None:
    async def main() -> None:
        backend.failure = ConnectionError("down")
        actor = make_actor(backend)
        registration = actor.register(await backend.grant(180), SHARED, on_lost=note_loss)
        await asyncio.sleep(500)
        assert [(when, lease) for when, lease, _ in losses] == [(60, "lease-1")]
        assert "ConnectionError: down" in losses[0][2]
        assert len(backend.asked) == 1
        assert not registration.active

    run_virtual(main())


def test_ls2_an_operation_that_ignores_its_cancel_counts_as_failed_and_is_not_doubled(
    backend: Any, note_loss: NoteLoss, losses: Losses
) -> None:
    async def main() -> None:
        backend.stuck = True
        actor = make_actor(backend)
        actor.register(await backend.grant(9), QUICK, on_lost=note_loss)
        await asyncio.sleep(8)
        assert len(backend.asked) == 1
        assert actor.stats.failures == 1
        await asyncio.sleep(2)
        assert [(when, lease) for when, lease, _ in losses] == [(9, "lease-1")]
        backend.stuck = False
        await actor.close()
        assert actor.under_way == 0

    run_virtual(main())


def test_ls4_an_operation_under_way_cannot_put_an_unregistered_lease_back(backend: Any, note_loss: NoteLoss) -> None:
    async def main() -> None:
        backend.delay = 0.5
        actor = make_actor(backend)
        registration = actor.register(await backend.grant(30), QUICK, on_lost=note_loss)
        await asyncio.sleep(3.25)
        assert actor.under_way == 1
        before = registration.lease
        registration.unregister()
        await asyncio.sleep(20)
        assert registration.lease is before
        assert len(backend.asked) == 1
        assert not actor.running

    run_virtual(main())


def test_ls6_an_actor_without_leases_ends_and_the_next_registration_starts_exactly_one(
    backend: Any, note_loss: NoteLoss
) -> None:
    async def main() -> None:
        actor = make_actor(backend)
        first = actor.register(await backend.grant(30), QUICK, on_lost=note_loss)
        await asyncio.sleep(1)
        running = actor.running
        first.unregister()
        await asyncio.sleep(0.1)
        assert (running, actor.running) == (True, False)
        for _ in range(3):
            actor.register(await backend.grant(30), QUICK, on_lost=note_loss)
        assert actor.stats.runs == 2
        await asyncio.sleep(3.1)
        assert len(backend.asked) == 3
        await actor.close()

    run_virtual(main())


def test_ls7_the_holder_stops_before_the_backend_may_end_the_lease(
    backend: Any, note_loss: NoteLoss, losses: Losses
) -> None:
    async def main() -> None:
        backend.delay = 0.75
        actor = make_actor(backend)
        actor.register(await backend.grant(8), QUICK, on_lost=note_loss)
        await asyncio.sleep(4)
        backend.failure = ConnectionError("down")
        await asyncio.sleep(20)
        assert [when for when, _lease, _why in losses] == [3 + 8], "counted from before the last success was asked for"
        assert "validity ended" in losses[0][2]

    run_virtual(main())


def test_ls1_a_lease_that_the_backend_calls_lost_is_pushed_to_its_owner_at_once(
    backend: Any, note_loss: NoteLoss, losses: Losses
) -> None:
    async def main() -> None:
        actor = make_actor(backend)
        lease = await backend.grant(30)
        actor.register(lease, QUICK, on_lost=note_loss)
        await backend.revoke(lease)
        await asyncio.sleep(4)
        assert losses == [(3, "lease-1", "lease-1 is dead")]

    run_virtual(main())


def test_ls2_the_lateness_of_the_loop_and_of_a_renewal_is_measured(backend: Any, note_loss: NoteLoss) -> None:
    async def main() -> None:
        actor = make_actor(backend)
        actor.register(await backend.grant(30), QUICK, on_lost=note_loss)
        await asyncio.sleep(2.5)
        loop = asyncio.get_running_loop()
        loop.jump(2)  # type: ignore[attr-defined]  # the virtual loop's clock: as if a callback had blocked for 2 s
        await asyncio.sleep(0.1)
        assert actor.stats.loop_lateness == pytest.approx(1.5)
        assert actor.stats.renewal_lateness == pytest.approx(1.5)
        await actor.close()

    run_virtual(main())


def test_ls2_a_cancel_at_any_tick_leaves_no_task(backend: Any, note_loss: NoteLoss) -> None:
    async def scenario(actor: KeepaliveActor) -> None:
        try:
            registration = actor.register(await backend.grant(30), QUICK, on_lost=note_loss)
            actor.register(await backend.grant(30), QUICK, on_lost=note_loss)
            await asyncio.sleep(7)
            registration.unregister()
            await asyncio.sleep(1)
        finally:
            await asyncio.shield(asyncio.ensure_future(actor.close()))

    async def check(actor: KeepaliveActor, _run: SweepRun) -> None:
        await actor.close()
        assert not actor.running
        assert actor.under_way == 0
        assert len(actor) == 0

    result = sweep_cancels(lambda: make_actor(backend), scenario, check)
    assert result.hits > 5
