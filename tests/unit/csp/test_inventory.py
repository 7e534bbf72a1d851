"""The stock and the atomic pairing: who gets what, when, and what a cancel leaves behind."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import Closed
from stagewire.testing import run_virtual
from stagewire_csp import Inventory, NoMorePairs, PairLease, ResourceEnvelope
from stagewire_csp.pairing import STEPS

if TYPE_CHECKING:
    from tests.unit.csp.conftest import Store

MakeStore = Callable[..., "Store"]
Settle = Callable[[], Coroutine[Any, Any, None]]
Suspends = Callable[[Coroutine[Any, Any, Any]], bool]


def test_csp4_a_pair_is_taken_together_and_both_slots_are_free_afterwards(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_pairs(1)
        async with store.inventory.claim_pair() as pair:
            assert (pair.t, pair.q) == ("t1", "q1")
            assert store.inventory.depths == (0, 0)
            assert (store.slots("t").held, store.slots("q").held) == (1, 1)
        assert (store.slots("t").free, store.slots("q").free) == (8, 8)
        assert store.fates == [("t", "t1", "consumed"), ("q", "q1", "consumed")]
        store.check()

    run_virtual(main())


def test_csp4_a_body_that_raises_writes_both_off_and_its_error_comes_out(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_pairs(1)
        with pytest.raises(ValueError, match="bad pair"):
            async with store.inventory.claim_pair():
                raise ValueError("bad pair")
        assert store.fates == [("t", "t1", "written_off"), ("q", "q1", "written_off")]
        assert (store.slots("t").free, store.slots("q").free) == (8, 8)

    run_virtual(main())


def test_csp4_no_one_sided_take_exists() -> None:
    """What a worker can call by name: nothing takes a T or a Q alone."""
    public = {name for name in vars(Inventory) if not name.startswith("_")}
    assert public == {
        *("put_t", "put_q", "claim_pair"),  # CSP-5: what workers call
        *("end_side", "close", "watch"),  # what the owner calls
        *("closed", "depths", "reserved", "waiting", "waiting_since", "oldest", "all_expired"),  # what is only read
    }


def test_csp5_put_and_claim_never_suspend_when_nothing_is_to_be_waited_for(does_suspend: Suspends) -> None:
    """Driven by hand, outside any event loop: each coroutine ends at its first step (a trap: grants that await)."""
    inventory = Inventory(4, 4, clock=lambda: 0.0)
    for slots, put in ((inventory.t_slots, inventory.put_t), (inventory.q_slots, inventory.put_q)):
        create = ResourceEnvelope.create_with_slot("x", slots, ttl=5)
        with pytest.raises(StopIteration) as made:
            create.send(None)
        assert not does_suspend(put(made.value.value))
    lease = inventory.claim_pair()
    assert not does_suspend(lease.__aenter__())
    assert not does_suspend(lease.__aexit__(None, None, None))
    assert not does_suspend(inventory.close())
    assert (inventory.t_slots.free, inventory.q_slots.free) == (4, 4)


def test_csp_trap_leases_and_permits_await_nothing_on_their_way_out() -> None:
    """A lease whose ``__aexit__`` awaits lets a second cancel hide the body's error: this one has no await at all."""
    assert "await" not in inspect.getsource(PairLease.__aexit__)


def test_csp6_a_waiting_claim_removes_nothing(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_t("t1")
        claim = await store.claim()
        assert store.inventory.depths == (1, 0)
        assert store.inventory.waiting == 1
        await claim.cancel()
        assert store.inventory.depths == (1, 0)
        assert store.inventory.waiting == 0
        assert store.fates == []
        store.check()

    run_virtual(main())


def test_csp6_a_cancelled_wait_costs_the_others_nothing(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        first, second = await store.claim(), await store.claim()
        await first.cancel()
        await store.put_pairs(1)
        assert not first.pair
        await second.finish()
        assert second.pair == ("t1", "q1")

    run_virtual(main())


def test_csp6_a_claim_that_is_cancelled_in_the_tick_of_its_grant_gives_the_pair_to_the_next(
    make_store: MakeStore, settled: Settle
) -> None:
    """A trap: reserved at the grant, given back to the head, and the wake-up is not lost."""

    async def main() -> None:
        store = make_store()
        first, second = await store.claim(), await store.claim()
        await store.put_pairs(1)
        assert store.inventory.reserved == 1
        first.task.cancel()
        await settled()
        assert first.task.cancelled()
        assert (first.pair, second.pair) == (None, ("t1", "q1"))
        await second.finish()
        store.check()

    run_virtual(main())


def test_csp_trap_a_pair_that_was_granted_in_vain_goes_back_to_the_head(make_store: MakeStore, settled: Settle) -> None:
    async def main() -> None:
        store = make_store()
        claims = [await store.claim(), await store.claim()]
        await store.put_pairs(1, 2, 3)
        for claim in claims:
            claim.task.cancel()
        await settled()
        assert store.inventory.depths == (3, 3)
        assert [(await store.claim()).pair for _ in range(3)] == [("t1", "q1"), ("t2", "q2"), ("t3", "q3")]
        store.check()

    run_virtual(main())


def test_csp6_a_claim_that_is_cancelled_after_the_claim_writes_both_off(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_pairs(1)
        claim = await store.claim()
        await claim.cancel()
        assert store.fates == [("t", "t1", "written_off"), ("q", "q1", "written_off")]
        assert store.inventory.depths == (0, 0)
        store.check()

    run_virtual(main())


def test_csp13_claims_are_served_in_the_order_of_arrival(make_store: MakeStore, settled: Settle) -> None:
    async def main() -> None:
        store = make_store(20, 20)
        claims = [await store.claim() for _ in range(10)]
        await store.put_pairs(*range(10))
        await settled()
        assert [claim.pair for claim in claims] == [(f"t{number}", f"q{number}") for number in range(10)]
        for claim in claims:
            await claim.finish()

    run_virtual(main())


def test_csp13_a_newcomer_does_not_overtake_who_waits(make_store: MakeStore, settled: Settle) -> None:
    async def main() -> None:
        store = make_store()
        waiter = await store.claim()
        await store.put_pairs(1)
        newcomer = await store.claim()
        assert (waiter.pair, newcomer.pair) == (("t1", "q1"), None)
        await newcomer.cancel()
        await waiter.finish()

    run_virtual(main())


def test_csp13_the_stock_is_first_in_first_out(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        for name in "abc":
            await store.put_t(name)
        for name in "xyz":
            await store.put_q(name)
        assert [(await store.claim()).pair for _ in range(3)] == [("a", "x"), ("b", "y"), ("c", "z")]

    run_virtual(main())


@pytest.mark.parametrize("side", ["t", "q"])
def test_csp5_an_envelope_is_put_once_and_on_its_own_side(side: str, make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        envelope = await store.put(side, "x")
        put = {"t": store.inventory.put_t, "q": store.inventory.put_q}
        with pytest.raises(ValueError, match="never put back"):
            await put[side](envelope)
        other = "q" if side == "t" else "t"
        stranger = await ResourceEnvelope.create_with_slot("y", store.slots(other))
        with pytest.raises(ValueError, match=f"not of this inventory's {side}_slots"):
            await put[side](stranger)
        stranger.release()
        with pytest.raises(ValueError, match="was released"):
            await put[other](stranger)
        store.check()

    run_virtual(main())


def test_csp11_nothing_is_requeued_a_claimed_envelope_cannot_be_put_again(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        t, _ = await store.put_t("t1"), await store.put_q("q1")
        claim = await store.claim()
        with pytest.raises(ValueError, match="never put back"):
            await store.inventory.put_t(t)
        await claim.finish()

    run_virtual(main())


def test_csp5_a_lease_is_entered_once(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_pairs(1, 2)
        lease = store.inventory.claim_pair()
        async with lease:
            pass
        with pytest.raises(RuntimeError, match="entered once"):
            async with lease:
                pass
        assert store.inventory.depths == (1, 1)

    run_virtual(main())


def test_csp15_after_a_close_nothing_is_put_and_no_claim_waits(make_store: MakeStore, settled: Settle) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_t("t1")
        waiting = await store.claim()
        await store.inventory.close()
        await settled()
        assert isinstance(waiting.task.exception(), NoMorePairs)
        with pytest.raises(NoMorePairs):
            async with store.inventory.claim_pair():
                pass
        envelope = await ResourceEnvelope.create_with_slot("t2", store.slots("t"))
        with pytest.raises(Closed, match="the inventory is closed"):
            await store.inventory.put_t(envelope)
        assert not envelope.released  # still the caller's
        envelope.release()
        assert store.fates == [("t", "t1", "written_off"), ("t", "t2", "written_off")]
        assert store.inventory.closed
        await store.inventory.close()
        store.check()

    run_virtual(main())


def test_csp15_a_pair_in_use_outlives_the_close(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_pairs(1)
        claim = await store.claim()
        await store.inventory.close()
        assert store.slots("t").held == 1
        await claim.finish()
        assert store.fates == [("t", "t1", "consumed"), ("q", "q1", "consumed")]
        store.check()

    run_virtual(main())


def test_csp15_a_granted_pair_that_comes_back_after_the_close_is_written_off(
    make_store: MakeStore, settled: Settle
) -> None:
    async def main() -> None:
        store = make_store()
        claim = await store.claim()
        await store.put_pairs(1)
        await store.inventory.close()
        claim.task.cancel()
        await settled()
        assert store.fates == [("t", "t1", "written_off"), ("q", "q1", "written_off")]
        assert store.inventory.depths == (0, 0)
        store.check()

    run_virtual(main())


@pytest.mark.parametrize("cancelled", [False, True])
def test_csp15_a_close_yields_between_batches_and_a_cancel_does_not_cut_it_short(
    cancelled: bool, make_store: MakeStore
) -> None:
    async def main() -> None:
        count = 3 * STEPS + 1
        store = make_store(count, count)
        for number in range(count):
            await store.put_t(number)
        closing = asyncio.create_task(store.inventory.close())
        await asyncio.sleep(0)
        assert store.inventory.depths == (count - STEPS, 0)
        if cancelled:
            closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled() is cancelled
        assert store.inventory.depths == (0, 0)
        assert store.slots("t").written_off == count

    run_virtual(main())


def test_csp15_when_a_side_has_ended_claims_end_once_it_is_used_up(make_store: MakeStore, settled: Settle) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_t("t1")
        store.inventory.end_side("t")
        with pytest.raises(Closed, match="side 't' was said to have ended"):
            await store.put_t("t2")
        claims = [await store.claim() for _ in range(3)]
        assert store.inventory.waiting == 3  # one T is left: a pair can still be formed
        await store.put_q("q1")
        await settled()
        assert claims[0].pair == ("t1", "q1")
        assert [type(claim.task.exception()) for claim in claims[1:]] == [NoMorePairs, NoMorePairs]
        await store.put_q("q2")  # the other side may go on; it is of no use
        with pytest.raises(NoMorePairs):
            async with store.inventory.claim_pair():
                pass
        await claims[0].finish()
        assert store.inventory.depths == (0, 1)

    run_virtual(main())


def test_csp15_claims_wait_on_while_the_last_pair_may_still_come_back(make_store: MakeStore, settled: Settle) -> None:
    async def main() -> None:
        store = make_store()
        first, second = await store.claim(), await store.claim()
        await store.put_t("t1")
        store.inventory.end_side("t")
        await store.put_q("q1")  # granted to the first, which is cancelled before it can take it
        first.task.cancel()
        assert store.inventory.waiting == 1
        await settled()
        assert second.pair == ("t1", "q1")
        await second.finish()

    run_virtual(main())


def test_csp14_reading_the_state_changes_nothing(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_t("t1", ttl=1)
        await asyncio.sleep(5)
        inventory = store.inventory
        ages = inventory.oldest("t"), inventory.oldest("q"), inventory.waiting_since
        assert (inventory.depths, ages) == ((1, 0), (0.0, None, None))  # expired, and still there
        assert (inventory.all_expired("t", 10), inventory.all_expired("q", 10)) == (True, False)
        assert store.fates == []
        claim = await store.claim()
        assert inventory.waiting_since == 5.0
        await claim.cancel()

    run_virtual(main())
