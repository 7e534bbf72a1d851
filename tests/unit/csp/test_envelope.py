"""A resource and its slot: together from the first, released exactly once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from stagewire.testing import run_virtual
from stagewire_csp import NEVER, Outcome, ResourceEnvelope

if TYPE_CHECKING:
    from tests.unit.csp.conftest import Store

MakeStore = Callable[..., "Store"]
Settle = Callable[[], Coroutine[Any, Any, None]]


def test_csp1_a_slot_is_released_exactly_once_and_the_first_outcome_counts(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        envelope = await ResourceEnvelope.create_with_slot("x", store.slots("t"))
        assert (store.slots("t").held, envelope.released) == (1, False)
        envelope.release(Outcome.CONSUMED)
        envelope.release()
        envelope.release(Outcome.EXPIRED)
        assert (store.slots("t").held, envelope.released, envelope.payload) == (0, True, None)
        assert store.fates == [("t", "x", "consumed")]
        store.check()

    run_virtual(main())


def test_csp2_there_is_no_envelope_without_a_slot() -> None:
    with pytest.raises(TypeError, match="create_with_slot"):
        ResourceEnvelope()


def test_csp2_a_cancel_between_the_slot_and_the_envelope_is_not_possible(
    make_store: MakeStore, settled: Settle
) -> None:
    """Cancelled while it waits, or in the tick in which the slot came: no slot is held, the resource is written off."""

    async def main(*, served: bool) -> None:
        store = make_store(1, 1)
        first = await ResourceEnvelope.create_with_slot("a", store.slots("t"))
        waiting = asyncio.create_task(ResourceEnvelope.create_with_slot("b", store.slots("t")))
        await settled()
        if served:
            first.release()
        waiting.cancel()
        await settled()
        assert waiting.cancelled()
        first.release()
        assert store.slots("t").free == 1
        assert ("t", "b", "written_off") in store.fates
        store.check()

    run_virtual(main(served=False))
    run_virtual(main(served=True))


def test_csp2_until_the_inventory_owns_it_an_error_releases_it(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()

        async def fail(when: str, resource: str) -> None:
            with await ResourceEnvelope.create_with_slot(resource, store.slots("t")) as envelope:
                if when == "after":
                    await store.inventory.put_t(envelope)
                raise ValueError(when)

        with pytest.raises(ValueError, match="before"):
            await fail("before", "x")
        assert store.fates == [("t", "x", "written_off")]
        with await ResourceEnvelope.create_with_slot("y", store.slots("t")):
            pass  # never put: not lost either
        assert store.slots("t").free == 8
        with pytest.raises(ValueError, match="after"):
            await fail("after", "z")
        assert store.inventory.depths == (1, 0)  # the inventory's: the error is none of its business
        store.check()

    run_virtual(main())


def test_csp5_only_the_inventory_releases_what_is_in_stock(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        envelope = await store.put_t("x")
        with pytest.raises(RuntimeError, match="the inventory owns it"):
            envelope.release()
        assert store.inventory.depths == (1, 0)
        store.check()

    run_virtual(main())


def test_csp7_the_time_to_live_counts_from_when_the_resource_was_there(make_store: MakeStore, settled: Settle) -> None:
    """It ages while it waits for its slot, too."""

    async def main() -> None:
        store = make_store(1, 1)
        first = await ResourceEnvelope.create_with_slot("a", store.slots("t"))
        waiting = asyncio.create_task(ResourceEnvelope.create_with_slot("b", store.slots("t"), ttl=10))
        await asyncio.sleep(7)
        first.release()
        second = await waiting
        assert (second.created_at, second.expires_at) == (0.0, 10.0)
        assert second.fresh(9.99)
        assert not second.fresh(10.0)

    run_virtual(main())


def test_csp_trap_a_time_of_zero_is_a_time(make_store: MakeStore) -> None:
    """``now or time.time()`` takes 0 for none: the virtual clock starts there."""

    async def main() -> None:
        store = make_store()
        envelope = await ResourceEnvelope.create_with_slot("x", store.slots("t"), ttl=5)
        assert (envelope.created_at, envelope.expires_at) == (0.0, 5.0)
        await store.inventory.put_t(envelope)
        assert store.inventory.oldest("t") == 0.0

    run_virtual(main())


@pytest.mark.parametrize("ttl", [0, -1, math.nan])
def test_csp7_a_ttl_that_is_over_at_once_is_refused_and_takes_no_slot(ttl: float, make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        with pytest.raises(ValueError, match="greater than 0"):
            await ResourceEnvelope.create_with_slot("x", store.slots("t"), ttl=ttl)
        assert (store.slots("t").free, store.slots("t").produced) == (8, 0)

    run_virtual(main())


def test_csp7_without_a_ttl_it_never_expires(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        envelope = await ResourceEnvelope.create_with_slot("x", store.slots("t"))
        assert envelope.ttl is NEVER
        assert envelope.fresh(1e300)

    run_virtual(main())


def test_an_envelope_says_what_it_is(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        envelope = await ResourceEnvelope.create_with_slot("x", store.slots("t"), ttl=5)
        assert repr(envelope) == "<ResourceEnvelope held, ttl 5: 'x'>"
        await store.inventory.put_t(envelope)
        assert "in stock" in repr(envelope)
        await store.inventory.close()
        assert "released" in repr(envelope)

    run_virtual(main())
