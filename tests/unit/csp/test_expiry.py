"""Lazy expiry: what is dropped, when, in what order, and with how much work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewire.testing import run_virtual
from stagewire_csp import Inventory, Outcome, ResourceEnvelope, Slots, pairing
from stagewire_csp.deadlines import SLACK, TIDY_STEPS, Deadlines
from stagewire_csp.pairing import STEPS
from stagewire_csp.shelf import Shelf

if TYPE_CHECKING:
    from tests.unit.csp.conftest import Store

MakeStore = Callable[..., "Store"]
Settle = Callable[[], Coroutine[Any, Any, None]]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make_envelope(payload: Any, slots: Slots, ttl: float | None) -> ResourceEnvelope:
    with pytest.raises(StopIteration) as made:
        ResourceEnvelope.create_with_slot(payload, slots, ttl=ttl).send(None)
    envelope: ResourceEnvelope = made.value.value
    return envelope


@pytest.mark.parametrize("trigger", ["put_t", "put_q", "claim"])
def test_csp7_put_t_put_q_and_claim_drop_what_has_expired_and_release_its_slots(
    trigger: str, make_store: MakeStore
) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_t("old", ttl=5)
        await asyncio.sleep(5)
        assert (store.inventory.depths, store.slots("t").held) == ((1, 0), 1)  # lazy: nothing happens by itself
        if trigger == "claim":
            await (await store.claim()).cancel()
        else:
            await store.put(trigger[-1], "new")
        assert store.fates == [("t", "old", "expired")]
        assert store.slots("t").held == (trigger == "put_t")
        store.check()

    run_virtual(main())


def test_csp7_a_claim_that_has_to_wait_behind_others_drops_what_has_expired_too(make_store: MakeStore) -> None:
    """Found by the state machine."""

    async def main() -> None:
        store = make_store()
        first = await store.claim()
        await store.put_t("old", ttl=5)
        await asyncio.sleep(5)
        second = await store.claim()
        assert store.fates == [("t", "old", "expired")]
        await first.cancel()
        await second.cancel()

    run_virtual(main())


def test_csp7_an_expired_resource_is_never_paired(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_t("stale", ttl=5)
        await store.put_t("good")
        await asyncio.sleep(5)
        await store.put_q("q")
        claim = await store.claim()
        assert claim.pair == ("good", "q")
        await claim.finish()

    run_virtual(main())


def test_csp7_what_has_expired_before_it_is_put_is_dropped_by_the_put(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        envelope = await ResourceEnvelope.create_with_slot("slow", store.slots("t"), ttl=5)
        await asyncio.sleep(6)
        await store.inventory.put_t(envelope)
        assert store.fates == [("t", "slow", "expired")]
        assert store.inventory.depths == (0, 0)

    run_virtual(main())


def test_csp_trap_a_granted_pair_is_checked_again_when_the_claim_resumes(settled: Settle) -> None:
    """Between the grant and the next step of the task time passes: what expired then is dropped, the rest goes back to
    the head, and the claim keeps its place."""

    async def main() -> None:
        clock = Clock()
        inventory = Inventory(4, 4, clock=clock)
        served: list[tuple[str, Any]] = []

        async def consume(name: str) -> None:
            async with inventory.claim_pair() as pair:
                served.append((name, (pair.t, pair.q)))

        tasks = [asyncio.create_task(consume(name)) for name in ("first", "second")]
        await settled()
        await inventory.put_t(make_envelope("stale", inventory.t_slots, 5))
        await inventory.put_q(make_envelope("q", inventory.q_slots, None))
        assert inventory.reserved == 1
        clock.now = 10
        await settled()
        assert (served, inventory.depths, inventory.reserved) == ([], (0, 1), 0)
        assert inventory.t_slots.expired == 1
        assert (inventory.waiting, inventory.waiting_since) == (2, 0.0)
        await inventory.put_t(make_envelope("good", inventory.t_slots, 5))
        await settled()
        assert served == [("first", ("good", "q"))]
        tasks[1].cancel()
        await settled()

    run_virtual(main())


def test_csp_trap_the_good_half_of_a_bad_pair_makes_another_pair_at_once(settled: Settle) -> None:
    async def main() -> None:
        clock = Clock()
        inventory = Inventory(4, 4, clock=clock)

        async def consume() -> Any:
            async with inventory.claim_pair() as pair:
                return pair.t, pair.q

        task = asyncio.create_task(consume())
        await settled()
        await inventory.put_t(make_envelope("stale", inventory.t_slots, 5))
        await inventory.put_q(make_envelope("q", inventory.q_slots, None))
        clock.now = 10
        await inventory.put_t(make_envelope("good", inventory.t_slots, None))
        assert await task == ("good", "q")
        assert inventory.t_slots.expired == 1

    run_virtual(main())


def test_csp_trap_a_stale_one_behind_a_fresh_one_is_found(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        await store.put_t("lasting", ttl=1_000)
        for name, ttl in (("a", 5.0), ("b", 3.0), ("c", 4.0)):
            await store.put_t(name, ttl)
        await asyncio.sleep(4)
        await store.put_q("q")
        assert {fate[1] for fate in store.fates} == {"b", "c"}
        assert store.inventory.depths == (2, 1)
        store.check()

    run_virtual(main())


def test_csp_trap_what_was_given_back_hides_no_stale_one_behind_it(settled: Settle) -> None:
    """A long-lived one was out while short-lived ones came in: when it is back at the head they still expire."""

    async def main() -> None:
        clock = Clock()
        inventory = Inventory(8, 8, clock=clock)

        async def consume() -> None:
            async with inventory.claim_pair():
                pass

        task = asyncio.create_task(consume())
        await settled()
        await inventory.put_t(make_envelope("lasting", inventory.t_slots, 1_000))
        await inventory.put_q(make_envelope("q", inventory.q_slots, 1_000))
        await inventory.put_t(make_envelope("short", inventory.t_slots, 5))
        await inventory.put_t(make_envelope("shorter", inventory.t_slots, 4))
        task.cancel()
        await settled()
        assert inventory.depths == (3, 1)
        clock.now = 5
        await inventory.put_q(make_envelope("q2", inventory.q_slots, None))
        assert inventory.depths == (1, 2)
        assert inventory.t_slots.expired == 2

    run_virtual(main())


def test_csp_trap_what_was_handed_on_at_once_and_given_back_hides_no_stale_one_behind_it(settled: Settle) -> None:
    """The same for one that never lay in stock before it was given back; found by the state machine."""

    async def main() -> None:
        clock = Clock()
        inventory = Inventory(8, 8, clock=clock)

        async def consume() -> None:
            async with inventory.claim_pair():
                pass

        task = asyncio.create_task(consume())
        await settled()
        await inventory.put_q(make_envelope("q", inventory.q_slots, None))
        await inventory.put_t(make_envelope("lasting", inventory.t_slots, None))  # handed to the claim at once
        await inventory.put_t(make_envelope("short", inventory.t_slots, 5))
        task.cancel()
        await settled()
        clock.now = 5
        await inventory.put_q(make_envelope("q2", inventory.q_slots, None))
        assert (inventory.depths, inventory.t_slots.expired) == ((1, 2), 1)

    run_virtual(main())


def test_csp_trap_a_mass_that_expires_at_once_is_dropped_in_bounded_steps(make_store: MakeStore) -> None:
    """No call does more than its share; a claim that waits gets the rest done, round by round."""

    async def main() -> None:
        count = 10 * STEPS
        store = make_store(count + 1, 1)
        for number in range(count):
            await store.put_t(number, ttl=5)
        await asyncio.sleep(5)
        await store.put_q("q")
        assert store.inventory.depths[0] == count - STEPS
        await asyncio.sleep(1)
        assert store.inventory.depths[0] == count - STEPS  # no sweeper: nobody waits, nothing happens
        claim = await store.claim()
        depths = [store.inventory.depths[0]]
        while depths[-1]:
            await asyncio.sleep(0)
            depths.append(store.inventory.depths[0])
        assert all(before - after <= STEPS for before, after in pairwise(depths))
        assert not claim.task.done()
        await store.put_t("good")
        await claim.finish()
        assert claim.pair == ("good", "q")
        store.check()

    run_virtual(main())


def test_csp_trap_a_fresh_one_behind_a_mass_of_stale_ones_is_claimed_without_a_further_put(
    make_store: MakeStore,
) -> None:
    async def main() -> None:
        count = 5 * STEPS
        store = make_store(count + 1, 1)
        for number in range(count):
            await store.put_t(number, ttl=5)
        await store.put_t("good", ttl=50)
        await asyncio.sleep(5)
        await store.put_q("q")
        claim = await store.claim()
        assert claim.pair == ("good", "q")
        assert store.slots("t").expired == count
        await claim.finish()

    run_virtual(main())


def test_csp13_a_mass_of_claims_is_served_in_bounded_steps(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a mass of stale T many pairs appear at once: they are handed out over several rounds, in order."""
    steps, count = 4, 16
    monkeypatch.setattr(pairing, "STEPS", steps)

    async def main() -> None:
        stale = steps * (count + 1)
        store = make_store(stale + count, count)
        for number in range(stale):
            await store.put_t(number, ttl=5)
        for number in range(count):
            await store.put_t(f"good {number}")
            await store.put_q(number)
        await asyncio.sleep(5)
        claims = [await store.claim(rounds=0) for _ in range(count)]
        served = [0]
        while served[-1] < count:
            await asyncio.sleep(0)
            served.append(sum(claim.pair is not None for claim in claims))
        assert max(after - before for before, after in pairwise(served)) <= steps
        assert [claim.pair for claim in claims] == [(f"good {number}", number) for number in range(count)]
        for claim in claims:
            await claim.finish()
        store.check()

    run_virtual(main())


def test_csp_trap_tombstones_do_not_pile_up() -> None:
    """Resources that live long and are taken at once leave entries behind; they are cleared a few at a time."""
    clock = Clock()
    slots = Slots("t", 10, clock)
    shelf = Shelf(slots)
    lasting = make_envelope("lasting", slots, 1e9)
    shelf.add(lasting)
    for number in range(20_000):
        envelope = make_envelope(number, slots, 1e6 - number)  # always a straggler
        shelf.add(envelope)
        taken = [shelf.pop(), shelf.pop()]
        for each in taken:
            if each is lasting:
                shelf.give_back(lasting)
            else:
                each.release(Outcome.CONSUMED)
        assert len(shelf._stragglers) < 5 * SLACK
    assert shelf.size == 1


def test_csp_trap_put_and_claim_stay_logarithmic(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20,000 in stock, in the worst order, a put and an expiry compare some dozens of deadlines, not thousands."""
    clock = Clock()
    slots = Slots("t", 30_000, clock)
    shelf = Shelf(slots)
    for number in range(20_000):
        shelf.add(make_envelope(number, slots, 1e6 - number))
    compared = 0
    compare = ResourceEnvelope.__lt__

    def counting(self: ResourceEnvelope, other: ResourceEnvelope) -> bool:
        nonlocal compared
        compared += 1
        return compare(self, other)

    monkeypatch.setattr(ResourceEnvelope, "__lt__", counting)
    shelf.add(make_envelope("new", slots, 1))
    clock.now = 2
    assert not shelf.drop_expired(clock.now, STEPS)
    assert slots.expired == 1
    assert compared < 64
    assert shelf.size == 20_000


def test_deadlines_are_found_in_both_heaps_while_entries_move() -> None:
    clock = Clock()
    slots = Slots("t", 1_000, clock)
    shelf = Shelf(slots)
    deadlines = Deadlines()
    kept = [make_envelope(number, slots, 100 + number) for number in range(3)]
    for envelope in kept:
        shelf.add(envelope)
        deadlines.add(envelope, 3)
    gone = [make_envelope("gone", slots, 200) for _ in range(SLACK + 10)]
    for envelope in gone:
        deadlines.add(envelope, 3)
        envelope.release()
    early = make_envelope("early", slots, 1)
    shelf.add(early)
    deadlines.add(early, 4)
    assert deadlines.due == 1.0
    late = make_envelope("late", slots, 50)
    shelf.add(late)
    deadlines.add(late, 5)
    clock.now = 60
    found = [deadlines.pop_due(clock.now), deadlines.pop_due(clock.now)]
    assert found == [early, late]
    assert deadlines.pop_due(clock.now) is None
    assert deadlines.due == 100.0
    assert TIDY_STEPS > 1  # or tidying would not outrun what is added


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from([1, 2, 3, 5, 8, 100, None])),
        st.tuples(st.just("take"), st.none()),
        st.tuples(st.just("give back"), st.integers(0, 5)),
        st.tuples(st.just("use up"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 1, 2, 4])),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(OPERATIONS)
def test_csp7_a_shelf_drops_exactly_what_has_expired(operations: list[tuple[str, Any]]) -> None:
    """Against a plain list: after a complete drop, what lies there is what is fresh, in the order of arrival."""
    clock = Clock()
    slots = Slots("t", 100, clock)
    shelf = Shelf(slots)
    model: list[ResourceEnvelope] = []
    out: list[ResourceEnvelope] = []
    for operation, argument in operations:
        if operation == "add":
            envelope = make_envelope(len(model), slots, argument)
            shelf.add(envelope, anew=not out)
            model.append(envelope)
        elif operation == "take" and model:
            assert shelf.first is model[0]
            out.append(shelf.pop())
            del model[0]
        elif operation == "give back" and out:
            envelope = out.pop(argument % len(out))
            shelf.give_back(envelope)
            assert [each for each in shelf if each is not envelope] == model
            model = list(shelf)  # where exactly among others given back is not promised
        elif operation == "use up" and out:
            out.pop(argument % len(out)).release(Outcome.CONSUMED)
        elif operation == "wait":
            clock.now += argument
        if shelf.due <= clock.now:
            assert not shelf.drop_expired(clock.now, 1_000)
        model = [envelope for envelope in model if envelope.fresh(clock.now)]
        assert list(shelf) == model
        assert shelf.size == len(model)
        assert all(envelope.expires_at >= shelf.due for envelope in model)
