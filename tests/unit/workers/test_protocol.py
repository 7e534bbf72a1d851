"""Orchestrators and workers over mailboxes, in virtual time: who registers, who is lost, who lets go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import PluginError
from stagewire_orchestrator import Terminal
from stagewire_orchestrator.remote.names import orchestrator_mailbox
from stagewire_orchestrator.remote.protocol import Outputs, pack

if TYPE_CHECKING:
    from tests.unit.workers.conftest import Play, Site

ONE = "stages: {one: {use: count}}\noutputs: {one: {file: x.txt}}\n"
AGAIN = "stages: {one: {use: count, idempotent: true}}\noutputs: {one: {file: x.txt}}\n"
PAIR = "stages: {one: {use: count, replicas: 2}}\noutputs: {one: {file: x.txt}}\n"
LINE = """
stages: {one: {use: count}, two: {use: up}}
edges: [{from: one, to: two}]
outputs: {one: {file: x.txt}, two: {file: y.txt}}
"""

COUNTED = [f"a {number}" for number in range(4)]


def data(outputs: list[Any]) -> list[Any]:
    return [output.data for output in outputs if output.has_data]


async def begin(site: Site, *stages: str) -> None:
    for stage in stages or ("one",):
        site.work(stage)
    await site.orchestrator.start()


def test_or15_two_stages_elsewhere_put_out_what_they_do_here(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site, "one", "two")
        await site.orchestrator.add_request("a", "a")
        outputs = await site.all_of("a")
        assert data(outputs) == [*COUNTED, *(each.upper() for each in COUNTED)]
        assert outputs[-1].terminal is Terminal.END
        assert not site.tables()

    play(story, LINE)


def test_or15_the_start_waits_for_a_worker_that_comes_late(play: Play) -> None:
    async def story(site: Site) -> None:
        starting = asyncio.create_task(site.orchestrator.start())
        await asyncio.sleep(30)
        assert not starting.done()
        site.work("one")
        await starting
        await site.orchestrator.add_request("a", "a")
        assert data(await site.all_of("a")) == COUNTED

    play(story, ONE)


def test_or15_the_start_says_which_worker_did_not_come_and_how_to_start_it(play: Play) -> None:
    async def story(site: Site) -> None:
        site.work("one")
        with pytest.raises(PluginError) as caught:
            await site.orchestrator.start()
        told = str(caught.value)
        assert all(part in told for part in ("replica 0", "'two'", "60 s", "stagewire worker CONFIG --stage two"))

    play(story, LINE)


def test_or10_what_a_stage_elsewhere_raises_fails_its_request_with_the_stage_named(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await site.orchestrator.add_request("a", "a")
        outputs = await site.all_of("a")
        assert data(outputs) == ["one"]
        assert outputs[-1].error is not None
        assert (outputs[-1].error.stage, outputs[-1].error.cause) == (
            "one",
            "process: ValueError: two cannot be had",
        )

    play(story, "stages: {one: {use: broken}}\noutputs: {one: {file: x.txt}}\n")


def test_or11_a_silent_worker_is_lost_and_its_request_fails_with_stage_and_replica(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await site.orchestrator.add_request("a", "a")
        assert (await site.next()).data == "a 0"
        await site.workers[0].kill()
        now = asyncio.get_running_loop().time()
        last = (await site.all_of("a"))[-1]
        assert last.error is not None
        assert last.error.stage == "one"
        assert "replica 0 was lost: no heartbeat" in last.error.cause
        assert 9 < asyncio.get_running_loop().time() - now < 13
        site.work("one")
        await site.orchestrator.add_request("a", "a")
        assert data(await site.all_of("a")) == COUNTED
        assert not site.tables()

    play(story, ONE)


def test_or11_new_requests_go_to_the_replica_that_is_there(play: Play) -> None:
    async def story(site: Site) -> None:
        first = site.work("one", 0)
        site.work("one", 1)
        await site.orchestrator.start()
        await first.kill()
        await asyncio.sleep(12)
        for name in ("a", "b", "c"):
            await site.orchestrator.add_request(name, "a")
        ended = [output for _ in range(15) if (output := await site.next()).finished]
        assert [output.terminal for output in ended] == [Terminal.END] * 3
        assert site.orchestrator.stats()["stage one/1"]["submitted"] == 3

    play(story, PAIR)


def test_or11_a_stage_to_which_no_worker_returns_fails_its_requests(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await site.workers[0].kill()
        await asyncio.sleep(100)
        await site.orchestrator.add_request("a", "a")
        (last,) = await site.all_of("a")
        assert last.error is not None
        assert "no worker registered as replica 0 of stage 'one'" in last.error.cause

    play(story, ONE)


@pytest.mark.parametrize("seconds", [0.5, 1.5, 3.5])
def test_or11_an_idempotent_stage_goes_on_at_its_next_worker_with_each_output_once(play: Play, seconds: float) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await site.orchestrator.add_request("a", "a")
        await asyncio.sleep(seconds)
        await site.workers[0].kill()
        await asyncio.sleep(20)
        site.work("one")
        outputs = await site.all_of("a")
        assert data(outputs) == COUNTED
        assert outputs[-1].terminal is Terminal.END
        assert not site.tables()

    play(story, AGAIN)


def test_or11_a_request_that_kills_every_worker_fails_in_the_end(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await site.orchestrator.add_request("a", "a")
        for _ in range(5):
            await asyncio.sleep(1.5)
            await site.workers[-1].kill()
            await asyncio.sleep(12)
            site.work("one")
        last = (await site.all_of("a"))[-1]
        assert last.error is not None
        assert "workers before it" in last.error.cause

    play(story, AGAIN)


def test_or12_an_abort_is_acknowledged_once_the_worker_has_let_go(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await site.orchestrator.add_request("a", "a")
        assert (await site.next()).data == "begun"
        now = asyncio.get_running_loop().time()
        assert await site.orchestrator.abort("a")
        assert asyncio.get_running_loop().time() - now >= 3
        await site.orchestrator.add_request("a", "a")
        assert (await site.next()).terminal is Terminal.CANCEL
        assert (await site.next()).data == "begun"

    play(story, "stages: {one: {use: slow_to_let_go}}\noutputs: {one: {file: x.txt}}\n")


def test_or12_an_abort_does_not_wait_for_a_worker_that_is_lost(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await site.orchestrator.add_request("a", "a")
        await site.next()
        await site.workers[0].kill()
        await asyncio.sleep(12)
        assert await site.orchestrator.abort("a") in (True, False)
        assert not site.orchestrator.stats()["tables"]["releases"]

    play(story, AGAIN)


def test_or15_a_worker_that_is_stopped_ends_what_it_has_and_its_successor_takes_the_next(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await site.orchestrator.add_request("a", "a")
        await site.next()
        stopping = asyncio.create_task(site.workers[0].stop())
        await asyncio.sleep(0.1)
        await site.orchestrator.add_request("b", "a")
        assert data(await site.all_of("a")) == COUNTED[1:]
        assert (await stopping).stopped
        site.work("one")
        assert data(await site.all_of("b")) == COUNTED

    play(story, ONE)


def test_or15_the_worker_that_started_later_has_the_seat(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await asyncio.sleep(3)
        site.work("one")
        report = await site.workers[0].task
        assert "another worker took replica 0" in report.failures[0].cause
        await site.orchestrator.add_request("a", "a")
        assert data(await site.all_of("a")) == COUNTED

    play(story, ONE)


def test_or11_what_a_lost_worker_says_late_is_dropped(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        await site.orchestrator.add_request("a", "a")
        await site.next()
        (wire,) = site.orchestrator.request_states
        fleet = wire.partition("#")[2].partition(".")[0]
        late = Outputs(
            sender="stale",
            number=1,
            stage="one",
            replica=0,
            worker="gone",
            started=1,
            outputs=[[wire, "late", True, True, None, None, None]],
        )
        await site.transport.batches().put_batch(orchestrator_mailbox("test", fleet), [pack(late)])
        assert data(await site.all_of("a")) == COUNTED[1:]
        assert site.orchestrator.stats()["stage one/0 worker"]["stale"] == 1

    play(story, ONE)


def test_or12_a_worker_lets_go_of_the_requests_of_an_orchestrator_that_fell_silent(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        other = site.another()
        await other.start()
        await other.add_request("a", "a")
        await site.orchestrator.add_request("b", "b")
        await asyncio.sleep(0.1)
        (desk,) = site.workers[0].pipeline._desks
        assert len(desk._client.running) == 2
        other._tasks.cancel_all()
        for replica in other._replicas:
            replica.client._fleet._tasks.cancel_all()  # type: ignore[attr-defined]
        assert (await site.all_of("b"))[-1].terminal is Terminal.END
        await asyncio.sleep(12)
        assert not desk._client.running
        assert len(desk._orchestrators) == 1
        await other.shutdown()

    play(story, ONE)


def test_or12_two_orchestrators_with_the_same_ids_do_not_meet(play: Play) -> None:
    async def story(site: Site) -> None:
        await begin(site)
        other = site.another()
        await other.start()
        await other.add_request("a", "b")
        await site.orchestrator.add_request("a", "a")
        assert data(await site.all_of("a")) == COUNTED
        assert (await other.next_output(10)).data == "b 0"
        await other.shutdown()

    play(story, ONE)


def test_or16_a_worker_is_held_back_by_a_client_that_takes_nothing(play: Play) -> None:
    async def fast(request: Any) -> Any:
        for number in range(100):
            yield number

    async def story(site: Site) -> None:
        await begin(site)
        await site.orchestrator.add_request("a", "a")
        await asyncio.sleep(5)
        assert len(site.orchestrator._outbox) <= 3
        assert data(await site.all_of("a")) == list(range(100))

    play.stages["fast"] = fast
    play(story, "stages: {one: {use: fast}}\noutputs: {one: {file: x.txt}}\nlimits: {queued_outputs: 3}\n")
