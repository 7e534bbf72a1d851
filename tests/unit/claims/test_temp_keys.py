"""The owner of temporary keys, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from stagewire import Closed, KVError, Lease
from stagewire.claims import TemporaryKeys, TooManyKeys
from stagewire.claims import temp_keys as module
from stagewire.claims.temp_keys import State
from stagewire.testing import SweepRun, run_virtual, sweep_cancels

LEASE = Lease("lease-1", 1, 180, 180)


def test_tk1_the_key_is_recorded_before_its_put_begins(kv: Any, leases: Any) -> None:
    async def main() -> None:
        keys = TemporaryKeys(kv, leases)
        seen: list[dict[str, State]] = []
        kv.on_put = lambda _key: seen.append(keys.states())
        keys.begin_put("k", b"value", LEASE).drop()
        assert keys.states() == {"k": State.PUTTING}
        await asyncio.sleep(1)
        assert seen == [{"k": State.PUTTING}]
        await keys.close()

    run_virtual(main())


def test_tk2_a_committed_key_goes_when_it_is_no_longer_borrowed(kv: Any, leases: Any) -> None:
    async def main() -> None:
        keys = TemporaryKeys(kv, leases)
        with keys.begin_put("k", b"value", LEASE) as ticket:
            await ticket.stored()
            await asyncio.sleep(100)
            assert keys.states() == {"k": State.BORROWED}
            assert kv.values == {"k": b"value"}
        await asyncio.sleep(0.01)
        assert kv.values == {}
        assert len(keys) == 0
        await keys.close()

    run_virtual(main())


def test_tk2_not_found_ends_a_committed_key(kv: Any, leases: Any) -> None:
    async def main() -> None:
        keys = TemporaryKeys(kv, leases)
        ticket = keys.begin_put("k", b"value", LEASE)
        await ticket.stored()
        kv.values.clear()
        ticket.drop()
        await asyncio.sleep(0.01)
        assert [found for _, _, found in kv.deletes] == [False]
        assert len(keys) == 0
        await keys.close()

    run_virtual(main())


@pytest.mark.parametrize("silent", [False, True], ids=["error", "no result in 30 s"])
def test_tk2_an_uncertain_key_is_looked_at_again_until_its_lease_has_ended(
    kv: Any, leases: Any, *, silent: bool
) -> None:
    async def main() -> None:
        kv.put_delay = 1_000 if silent else 0
        kv.put_failure = ConnectionError("reset")
        kv.late_effect = 42
        keys = TemporaryKeys(kv, leases)
        keys.begin_put("k", b"value", LEASE).drop()
        await asyncio.sleep(60)
        assert [key for _, key, found in kv.deletes if found] == ["k"], "the put took effect at 42 s, after deletes"
        times = [when for when, _, _ in kv.deletes]
        assert times[0] == (30 if silent else 0)
        assert all(5 <= later - earlier <= 5.25 for earlier, later in itertools.pairwise(times))
        assert len(keys) == 1
        await leases.revoke(LEASE)
        await asyncio.sleep(6)
        assert len(keys) == 0
        assert kv.values == {}
        await keys.close()

    run_virtual(main())


def test_tk3_the_numbers_of_the_specification_are_the_defaults() -> None:
    assert (module.TRACKED, module.STORED_TIMEOUT, module.PUT_TIMEOUT, module.DELETE_TIMEOUT) == (64, 10, 30, 1)
    assert (module.FIRST_BACKOFF, module.LAST_BACKOFF, module.RECHECK, module.JITTER) == (0.1, 5, 5, 0.25)
    assert module.GRACE == 5


def test_tk3_a_65th_key_is_refused_before_its_put_and_none_is_evicted(kv: Any, leases: Any) -> None:
    async def main() -> None:
        keys = TemporaryKeys(kv, leases)
        tickets = [keys.begin_put(f"k{number}", b"", LEASE) for number in range(64)]
        put: list[str] = []
        kv.on_put = put.append
        with pytest.raises(TooManyKeys, match="64 temporary keys are tracked"):
            keys.begin_put("k64", b"", LEASE)
        await asyncio.sleep(1)
        assert "k64" not in put
        assert len(keys) == 64
        tickets[0].drop()
        await asyncio.sleep(1)
        keys.begin_put("k64", b"", LEASE).drop()
        for ticket in tickets:
            ticket.drop()
        await keys.close()
        assert kv.values == {}

    run_virtual(main())


def test_tk3_the_sender_waits_10_s_and_the_key_stays_owned(kv: Any, leases: Any) -> None:
    async def main() -> None:
        kv.put_delay = 20
        keys = TemporaryKeys(kv, leases)
        with keys.begin_put("k", b"value", LEASE) as ticket:
            with pytest.raises(KVError, match="no result within 10 s"):
                await ticket.stored()
            assert asyncio.get_running_loop().time() == 10
        await asyncio.sleep(11)
        assert kv.values == {}
        assert [(when, found) for when, _, found in kv.deletes] == [(20, True)]
        await keys.close()

    run_virtual(main())


def test_tk3_a_delete_backs_off_from_100_ms_to_5_s_with_the_same_jitter_each_time(kv: Any, leases: Any) -> None:
    async def one_run() -> list[float]:
        kv.deletes.clear()
        kv.delete_failures = 10
        keys = TemporaryKeys(kv, leases)
        keys.begin_put("k", b"value", LEASE).drop()
        await asyncio.sleep(60)
        await keys.close()
        return [when for when, _, _ in kv.deletes]

    first, second = run_virtual(one_run()), run_virtual(one_run())
    assert first == second
    waits = [later - earlier for earlier, later in itertools.pairwise(first)]
    for wait, base in zip(waits, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5], strict=True):
        assert base <= wait <= base + 0.25


def test_tk3_a_delete_without_an_answer_is_given_one_second(kv: Any, leases: Any) -> None:
    async def main() -> None:
        kv.delete_hangs = True
        keys = TemporaryKeys(kv, leases)
        keys.begin_put("k", b"value", LEASE).drop()
        await asyncio.sleep(1.05)
        kv.delete_hangs = False
        await asyncio.sleep(1)
        assert kv.values == {}
        await keys.close()

    run_virtual(main())


def test_tk4_dropping_a_ticket_never_waits_and_may_be_repeated(kv: Any, leases: Any) -> None:
    async def main() -> None:
        kv.delete_hangs = True
        keys = TemporaryKeys(kv, leases)
        ticket = keys.begin_put("k", b"value", LEASE)
        await ticket.stored()
        ticket.drop()
        ticket.drop()
        assert kv.values == {"k": b"value"}
        await keys.close(grace=0.1)

    run_virtual(main())


def test_tk5_a_stop_closes_admission_lets_go_what_can_go_and_ends_in_5_s(kv: Any, leases: Any) -> None:
    async def main() -> None:
        keys = TemporaryKeys(kv, leases)
        good = keys.begin_put("good", b"value", LEASE)
        await good.stored()
        kv.put_failure = ConnectionError("reset")
        keys.begin_put("uncertain", b"value", LEASE).drop()
        keys.begin_put("held", b"value", LEASE)
        good.drop()
        await keys.close()
        assert asyncio.get_running_loop().time() == 5
        assert "good" not in kv.values
        assert len(keys) == 0
        with pytest.raises(Closed):
            keys.begin_put("late", b"", LEASE)

    run_virtual(main())


def test_tk5_a_sender_that_waits_is_told_of_the_stop(kv: Any, leases: Any) -> None:
    async def main() -> None:
        kv.put_delay = 100
        keys = TemporaryKeys(kv, leases)
        waiting = asyncio.ensure_future(keys.begin_put("k", b"value", LEASE).stored())
        await asyncio.sleep(1)
        await keys.close(grace=2)
        with pytest.raises(KVError, match="stopped before"):
            await waiting

    run_virtual(main())


def test_tk1_a_sender_cancelled_at_any_tick_leaves_no_key(kv: Any, leases: Any) -> None:
    async def scenario(keys: TemporaryKeys) -> None:
        kv.put_delay = 0.5
        with keys.begin_put("k", b"value", LEASE) as ticket:
            await ticket.stored()
            await asyncio.sleep(0.5)

    async def check(keys: TemporaryKeys, _run: SweepRun) -> None:
        await asyncio.sleep(2)
        assert kv.values == {}
        assert len(keys) == 0
        await keys.close()

    assert sweep_cancels(lambda: TemporaryKeys(kv, leases), scenario, check).hits >= 3
