"""``stage_provider``: what it takes, what it refuses, and how plain code runs."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from typing import Any, cast

import pytest
from pydantic import SecretStr

from stagewire import (
    BlockingRequest,
    BuildContext,
    Options,
    Stage,
    StageRequest,
    StagewireError,
    StillHeld,
    stage_provider,
)
from stagewire.stages import threads
from stagewire.testing import StubContext, no_leaks, stage_context

blocking_code: Any = import_module("unit.stages.blocking_code")  # by a name that a process of its own can import too
Marks = blocking_code.Marks


def build(made_of: Callable[..., Any], options: Options | None = None, **how: Any) -> Stage:
    provider = stage_provider("test.stage", made_of, options=type(options or Options()), **how)
    return provider.factory(options or Options(), cast("BuildContext", StubContext()))


async def feed(*chunks: Any) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


async def collect(stage: Stage, request: StageRequest) -> list[Any]:
    await stage.open(stage_context())
    try:
        return [chunk async for chunk in stage.process(request)]
    finally:
        await stage.close()


def run(stage: Stage, request: StageRequest | None = None) -> list[Any]:
    with no_leaks():
        return asyncio.run(collect(stage, request or StageRequest("r", chunks=feed("a", "b"))))


def test_the_summary_is_the_first_line_of_the_docstring() -> None:
    assert stage_provider("x.shout", blocking_code.shout, options=Marks, blocking="thread").summary == "Say it louder."
    assert stage_provider("x.count", blocking_code.count, blocking="thread").summary == "x.count"
    assert stage_provider("x.count", blocking_code.count, blocking="thread", summary="Count.").summary == "Count."


def test_an_asynchronous_stage_that_says_it_blocks_is_refused_with_the_remedy() -> None:
    async def process(request: StageRequest) -> AsyncIterator[str]:
        yield request.id

    with pytest.raises(TypeError, match="remove blocking='thread'"):
        stage_provider("x.y", process, blocking="thread")


@pytest.mark.parametrize("made_of", [3, type("Empty", (), {})])
def test_what_is_no_stage_is_refused(made_of: Any) -> None:
    with pytest.raises(TypeError, match="cannot be made of"):
        stage_provider("x.y", made_of)


def test_a_function_that_no_other_process_can_import_is_refused() -> None:
    def local(request: BlockingRequest) -> str:
        return request.id

    with pytest.raises(TypeError, match="top of a module"):
        stage_provider("x.y", local, blocking="process")


def test_a_decorated_async_function_is_still_asynchronous() -> None:
    async def process(request: StageRequest) -> AsyncIterator[str]:
        async for chunk in request.chunks:
            yield chunk * 2

    @functools.wraps(process)
    def wrapper(*args: Any) -> Any:
        return process(*args)

    assert run(build(wrapper)) == ["aa", "bb"]


@pytest.mark.parametrize("blocking", ["no", "thread", "process"])
def test_plain_code_may_return_one_chunk_or_none(blocking: str) -> None:
    assert run(build(blocking_code.count, blocking=blocking)) == [2]
    assert run(build(blocking_code.nothing, blocking=blocking)) == []


@pytest.mark.parametrize("blocking", ["no", "thread", "process"])
def test_plain_code_sees_the_whole_request(blocking: str) -> None:
    request = StageRequest("id", {"a": 1}, feed(), ["x", "y"], {"up": ["x"], "down": ["y"]})
    stage = build(blocking_code.inputs, blocking=blocking)
    assert run(stage, request) == [["id", {"a": 1}, ["x", "y"], {"up": ["x"], "down": ["y"]}]]


def test_or10_what_would_end_the_stages_process_fails_the_request_only() -> None:
    async def main() -> None:
        stage = build(blocking_code.leave, blocking="process")
        await stage.open(stage_context())
        for _each in range(2):  # the process lives on
            stream = stage.process(StageRequest("r"))
            assert await anext(stream) == "before"
            with pytest.raises(StagewireError, match="SystemExit: 3"):
                await anext(stream)
        await stage.close()

    asyncio.run(main())


@pytest.mark.parametrize("blocking", ["no", "thread", "process"])
def test_or10_what_plain_code_raises_comes_after_what_it_yielded(blocking: str) -> None:
    async def main() -> list[Any]:
        stage = build(blocking_code.fail, blocking=blocking)
        await stage.open(stage_context())
        stream = stage.process(StageRequest("r"))
        got = [await anext(stream)]
        with pytest.raises((ValueError, StagewireError), match="boom"):
            await anext(stream)
        await stage.close()
        return got

    assert asyncio.run(main()) == ["before"]


def test_a_process_has_an_interpreter_and_the_secrets_of_the_options() -> None:
    (pid,) = run(build(blocking_code.process_id, blocking="process"))
    assert pid != os.getpid()
    options = Marks(secret=SecretStr("hunter2"))
    assert run(build(blocking_code.tell_secret, options, blocking="process")) == ["hunter2"]


def test_a_stage_that_cannot_be_made_in_its_process_fails_to_open() -> None:
    with pytest.raises(StagewireError, match="no such device"):
        run(build(blocking_code.Unmakeable, blocking="process"))


def test_a_class_in_a_process_is_opened_there() -> None:
    assert run(build(blocking_code.Opened, Marks(), blocking="process")) == ["stage: a!", "stage: b!"]


def test_a_chunk_that_cannot_travel_fails_its_request_by_name() -> None:
    with pytest.raises(StagewireError, match="CodecError"):
        run(build(blocking_code.unsendable, blocking="process"))


def test_or10_a_process_that_dies_fails_its_requests_and_the_next_request_has_another() -> None:
    async def main() -> None:
        stage = build(blocking_code.die, blocking="process")
        await stage.open(stage_context())
        for _ in range(2):
            async with asyncio.timeout(20):
                with pytest.raises(StagewireError, match="ended with status 3"):
                    async for _chunk in stage.process(StageRequest("r")):
                        pass
        await stage.close()

    with no_leaks():
        asyncio.run(main())


def test_blocking_code_that_waits_holds_up_no_other_request() -> None:
    async def main() -> None:
        gate = threading.Event()

        def wait(request: BlockingRequest) -> str:
            if request.id == "slow":
                gate.wait(20)
            return request.id

        stage = build(wait, blocking="thread")
        slow = [asyncio.create_task(collect_ids(stage, "slow")) for _ in range(50)]
        assert await collect_ids(stage, "quick") == ["quick"]
        gate.set()
        assert await asyncio.gather(*slow) == [["slow"]] * 50
        await stage.close()

    async def collect_ids(stage: Stage, name: str) -> list[Any]:
        return [chunk async for chunk in stage.process(StageRequest(name))]

    asyncio.run(main())


@pytest.mark.parametrize("blocking", ["thread", "process"])
def test_or16_blocking_code_is_held_back_when_nobody_takes(blocking: str) -> None:
    async def main() -> None:
        asked = 0

        async def counted() -> AsyncIterator[str]:
            nonlocal asked
            for number in range(1000):
                asked = number
                yield "x"

        stage = build(blocking_code.shout, Marks(), blocking=blocking)
        await stage.open(stage_context())
        stream = stage.process(StageRequest("r", chunks=counted()))
        assert await anext(stream) == "X!"
        for _ in range(50):  # until the code waits, in real time; far from 1,000 in any case
            await asyncio.sleep(0.002)
        assert asked < 50
        await cast("Any", stream).aclose()
        await stage.close()

    asyncio.run(main())


def test_a_cancelled_thread_ends_its_generator_at_once() -> None:
    async def main() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work(request: BlockingRequest) -> Iterator[str]:
            try:
                yield from request.chunks
            finally:
                loop.call_soon_threadsafe(ended.set)

        async def stuck() -> AsyncIterator[str]:
            yield "a"
            await asyncio.Event().wait()

        stage = build(work, blocking="thread")
        stream = stage.process(StageRequest("r", chunks=stuck()))
        assert await anext(stream) == "a"
        await cast("Any", stream).aclose()
        async with asyncio.timeout(20):
            await ended.wait()
        await stage.close()

    with no_leaks():
        asyncio.run(main())


def test_sd7_closing_waits_for_threads_and_names_the_one_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "GRACE", 0.01)
    gate = threading.Event()

    async def main() -> None:
        def work(_request: BlockingRequest) -> Iterator[int]:
            yield 1
            gate.wait(20)
            yield 2

        stage = build(work, blocking="thread")
        stream = stage.process(StageRequest("stubborn"))
        assert await anext(stream) == 1
        await asyncio.to_thread(time.sleep, 0.02)  # the thread is in the wait by now, or stopped before it: both hold
        await cast("Any", stream).aclose()
        with pytest.raises(StillHeld, match="stubborn"):
            await stage.close()
        gate.set()
        monkeypatch.setattr(threads, "GRACE", 20)
        await stage.close()

    with no_leaks():
        asyncio.run(main())


def test_an_inline_generator_is_closed_when_nobody_wants_more() -> None:
    closed: list[bool] = []

    def work(_request: BlockingRequest) -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    async def main() -> None:
        stream = build(work).process(StageRequest("r"))
        assert await anext(stream) == 1
        await cast("Any", stream).aclose()

    asyncio.run(main())
    assert closed == [True]
