"""Chunk edges between workers, in real time: what a dead worker had is done again by its successor, and once only."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from stagewire_orchestrator import Terminal
from stagewire_orchestrator.remote.labels import labelled
from stagewire_orchestrator.remote.launcher import _how
from stagewire_orchestrator.remote.names import Seat

if TYPE_CHECKING:
    from tests.unit.workers.conftest import Play, Site

CHUNKS = """
liveness: {heartbeat: 0.05, lost_after: 0.3}
stages: {one: {use: words}, two: {use: slowly, idempotent: IDEMPOTENT}, three: {use: up}}
edges: [{from: one, to: two, kind: chunk, window: 4}, {from: two, to: three, kind: chunk, window: 4}]
outputs: {FINALS}
"""

WORDS = [f"w{number}" for number in range(60)]


def text(finals: str = "three: {file: y.txt}", idempotent: str = "true") -> str:
    return CHUNKS.replace("FINALS", finals).replace("IDEMPOTENT", idempotent)


async def prompt() -> Any:
    for word in WORDS:
        yield word.encode()


async def words(request: Any) -> Any:
    async for chunk in request.chunks:
        yield bytes(chunk).decode()


async def slowly(request: Any) -> Any:
    async for chunk in request.chunks:
        await asyncio.sleep(0.003)
        yield chunk + "a"
        yield chunk + "b"


@pytest.fixture
def chunked(play: Play) -> Play:
    play.stages |= {"words": words, "slowly": slowly}
    return play


def of(outputs: list[Any], stage: str) -> list[str]:
    return [output.data for output in outputs if output.has_data and output.stage_id == stage]


BOTH = [word + end for word in WORDS for end in "ab"]


@pytest.mark.parametrize("finals", ["three: {file: y.txt}", "two: {file: x.txt}, three: {file: y.txt}"])
@pytest.mark.parametrize("after", [0, 1, 37])
def test_or15_the_middle_of_three_dies_and_every_chunk_comes_once_and_in_order(
    chunked: Play, finals: str, after: int
) -> None:
    async def story(site: Site) -> None:
        for stage in ("one", "two", "three"):
            site.work(stage)
        await site.orchestrator.start()
        await site.orchestrator.add_request("a", prompt())
        outputs = [await site.next() for _ in range(after)]
        await site.workers[1].kill()
        site.work("two")
        outputs += await site.all_of("a")
        assert outputs[-1].terminal is Terminal.END, outputs[-1].error
        assert of(outputs, "three") == [each.upper() for each in BOTH]
        if "two" in finals:
            assert of(outputs, "two") == BOTH
        assert not site.tables()

    chunked(story, text(finals), real=True)


def test_or15_it_may_die_again_and_again(chunked: Play) -> None:
    async def story(site: Site) -> None:
        for stage in ("one", "two", "three"):
            site.work(stage)
        await site.orchestrator.start()
        await site.orchestrator.add_request("a", prompt())
        outputs = []
        for _ in range(3):
            outputs += [await site.next() for _ in range(20)]
            await site.workers[-1 if len(site.workers) > 3 else 1].kill()
            site.work("two")
        outputs += await site.all_of("a")
        assert of(outputs, "three") == [each.upper() for each in BOTH]

    chunked(story, text(), real=True)


def test_or15_what_is_kept_for_a_successor_goes_when_it_was_used(chunked: Play) -> None:
    async def story(site: Site) -> None:
        for stage in ("one", "two", "three"):
            site.work(stage)
        await site.orchestrator.start()
        await site.orchestrator.add_request("a", prompt())
        await site.all_of("a")
        (client,) = site.workers[0].pipeline._clients
        async with asyncio.timeout(5):
            while client.stats()["edge one->two/0"]["kept_requests"]:  # noqa: ASYNC110 — a message brings it about
                await asyncio.sleep(0.01)

    chunked(story, text(), real=True)


def test_or11_a_stage_that_is_not_idempotent_fails_its_request_with_stage_and_replica(chunked: Play) -> None:
    async def story(site: Site) -> None:
        for stage in ("one", "two", "three"):
            site.work(stage)
        await site.orchestrator.start()
        await site.orchestrator.add_request("a", prompt())
        await site.next()
        await site.workers[1].kill()
        last = (await site.all_of("a"))[-1]
        assert last.error is not None
        assert last.error.stage == "two"
        assert "replica 0 was lost" in last.error.cause

    chunked(story, text(idempotent="false"), real=True)


def test_or10_an_input_that_cannot_be_read_fails_its_request(chunked: Play) -> None:
    async def unreadable() -> Any:
        yield b"one"
        raise OSError("the disk is gone")

    async def story(site: Site) -> None:
        for stage in ("one", "two", "three"):
            site.work(stage)
        await site.orchestrator.start()
        await site.orchestrator.add_request("a", unreadable())
        last = (await site.all_of("a"))[-1]
        assert last.error is not None
        assert (last.error.stage, last.error.cause) == ("one", "its input: OSError: the disk is gone")

    chunked(story, text(), real=True)


def test_lg1_lines_of_a_worker_say_whose_they_are() -> None:
    seat = Seat("morse", 1)
    assert labelled(seat, "Traceback") == "morse/1 | Traceback"
    assert labelled(seat, '{"event": "x"}') == '{"event": "x", "worker": "morse/1"}'
    assert labelled(seat, "{broken}") == "morse/1 | {broken}"
    assert _how(-9) == "its process was killed by SIGKILL"
    assert _how(1) == "its process ended with status 1"
