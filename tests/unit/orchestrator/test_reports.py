"""Each request can be followed: events, counters, live sizes of every table (OR-18)."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from typing import Any

from stagewire import LoggingOptions, make_logger
from stagewire_orchestrator.testing import FullClient

Play = Callable[..., None]


def test_or18_a_request_can_be_followed_through_its_events(play: Play) -> None:
    lines = io.StringIO()
    log = make_logger(LoggingOptions(level="debug", format="json"), pipeline="p", stream=lines)

    async def story(world: Any) -> None:
        await world.add("r")
        await world.finish("r")
        world.stages[0].put("r", "late")
        await world.settle()

    play(story, log=log, finals={2})
    events = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert all(event["request_id"] == "r" for event in events)
    assert [(event["event"], event.get("stage", event.get("edge"))) for event in events] == [
        ("request.admitted", None),
        ("stage.submitted", 0),
        ("stage.ended", 0),
        ("stage.forwarded", "0->1"),
        ("stage.submitted", 1),
        ("stage.ended", 1),
        ("stage.forwarded", "1->2"),
        ("stage.submitted", 2),
        ("stage.ended", 2),
        ("request.ended", None),
        ("request.late_output", 0),
    ]
    assert events[1]["replica"] == 0
    assert events[2]["outputs"] == 1


def test_or18_what_goes_wrong_is_told_without_debug(play: Play) -> None:
    lines = io.StringIO()
    log = make_logger(LoggingOptions(level="info", format="json"), pipeline="p", stream=lines)

    async def story(world: Any) -> None:
        await world.add("ended", "failed", "aborted")
        await world.finish("ended")
        world.stages[0].put("failed", error=ValueError("boom"))
        await world.orchestrator.abort("aborted")
        world.stages[1].die(OSError("gone"))
        await world.settle()

    play(story, log=log)
    events = {line["event"]: line for line in map(json.loads, lines.getvalue().splitlines())}
    assert events.keys() == {"request.ended", "request.failed", "request.cancelled", "stage.lost"}
    assert (events["request.failed"]["stage"], events["request.failed"]["cause"]) == (0, "process: ValueError: boom")
    assert (events["stage.lost"]["stage"], events["stage.lost"]["replica"], events["stage.lost"]["level"]) == (
        1,
        0,
        "error",
    )


def test_or18_counters_and_live_sizes_are_metrics(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("a", "b", "c")
        await world.finish("a")
        world.stages[0].put("b", "x")
        world.stages[0].put("b", error=ValueError())
        await world.settle()
        stats = world.orchestrator.stats()
        assert stats["requests"] == {
            "admitted": 3, "ended": 1, "failed": 1, "cancelled": 0, "dropped_outputs": 0, "dropped_for_client": 0,
        }  # fmt: skip
        assert stats["tables"] == {
            "ledger": 1, "releases": 0, "ids": 1, "slots": 2, "waiting": 0, "inbox": 0, "ready": 0, "submitting": 0,
            "outputs": 2, "load": 1,
        }  # fmt: skip
        assert stats["stage 0/0"] == {"load": 1, "submitted": 3, "outputs": 3, "ended": 1, "held": 0, "lost": 0}
        assert stats["edge 0->1"] == {"requests": 1, "chunks": 1}
        metrics = {metric.name: metric for metric in world.orchestrator.metrics()}
        assert metrics["orchestrator_requests"].values["admitted",] == 3
        assert metrics["orchestrator_table_size"].values == {(name,): size for name, size in stats["tables"].items()}
        assert metrics["orchestrator_edge_chunks"].values["0->1",] == 1
        assert metrics["orchestrator_stage_events"].values["0", "0", "submitted"] == 3
        assert metrics["orchestrator_stage_state"].values["0", "0", "load"] == 1

    play(story)


def test_or18_without_a_logger_only_warnings_are_told(play: Play, capsys: Any) -> None:
    async def story(world: Any) -> None:
        await world.add("r", "bad")
        await world.finish("r")
        world.stages[0].put("bad", error=ValueError("boom"))
        await world.settle()

    play(story, client=FullClient)
    (line,) = capsys.readouterr().err.splitlines()
    assert "request.failed" in line


def test_or18_durations_count_from_when_the_request_came_after_idling(play: Play) -> None:
    lines = io.StringIO()
    log = make_logger(LoggingOptions(level="debug", format="json"), pipeline="p", stream=lines)

    async def story(world: Any) -> None:
        await world.add("first")
        await world.finish("first")
        await asyncio.sleep(3600)
        await world.add("second")
        await asyncio.sleep(2)
        await world.finish("second")

    play(story, log=log)
    ended = [event for event in map(json.loads, lines.getvalue().splitlines()) if event["event"].endswith(".ended")]
    assert max(event["seconds"] for event in ended if event["request_id"] == "first") < 1
    last = ended[-1]
    assert (last["event"], last["request_id"]) == ("request.ended", "second")
    assert 2 <= last["seconds"] < 3
    assert 2 <= last["stages"]["0"] < 3
