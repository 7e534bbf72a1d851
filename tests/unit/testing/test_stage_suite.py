"""The stage suite passes a good stage and finds what is broken in a bad one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

import pytest

from stagewire import StageContext, StageRequest
from stagewire.testing import Leak, StageSample, StageSuite


class Doubler:
    """Yields each chunk and a copy of it; subclasses break it."""

    async def open(self, context: StageContext) -> None:
        self.context = context

    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        async for chunk in request.chunks:
            yield chunk
            await asyncio.sleep(0)
            yield chunk

    async def close(self) -> None:
        pass


class TestDoubler(StageSuite):
    samples: ClassVar[Sequence[StageSample]] = (
        StageSample(chunks=("a", "b"), outputs=("a", "a", "b", "b")),
        StageSample(chunks=("x",), outputs=("x", "x")),
        StageSample(chunks=(), outputs=()),
    )
    stage: ClassVar[type[Doubler]] = Doubler

    def make_stage(self) -> Doubler:
        return self.stage()


class Summing(Doubler):
    """A stage behind batch edges."""

    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        yield sum(request.inputs)


class TestSumming(StageSuite):
    samples: ClassVar[Sequence[StageSample]] = (StageSample(chunks=(1, 2, 3), outputs=(6,), batch=True),)

    def make_stage(self) -> Summing:
        return Summing()


class LosesLast(Doubler):
    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        last = None
        async for chunk in request.chunks:
            if last is not None:
                yield last
                yield last
            last = chunk


class Collects(Doubler):
    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        for chunk in [chunk async for chunk in request.chunks]:
            yield chunk
            yield chunk


class Mixes(Doubler):
    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        async for chunk in request.chunks:
            self.last = chunk
            yield chunk
            await asyncio.sleep(0)
            yield self.last


class HidesErrors(Doubler):
    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        try:
            async for chunk in request.chunks:
                yield chunk
                yield chunk
        except Exception:
            return


class BreaksAfterError(Doubler):
    broken = False

    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        if self.broken:
            raise RuntimeError
        try:
            async for chunk in request.chunks:
                yield chunk
                yield chunk
        except BaseException:
            self.broken = True
            raise


class LeavesTasks(Doubler):
    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        self.task = asyncio.create_task(asyncio.sleep(3600))
        async for chunk in request.chunks:
            yield chunk
            yield chunk
        self.task.cancel()


class SwallowsCancels(Doubler):
    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        try:
            async for chunk in request.chunks:
                yield chunk
                yield chunk
        except asyncio.CancelledError:
            yield None


class CannotClose(Doubler):
    open_requests = 0

    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        self.open_requests += 1
        async for chunk in request.chunks:
            yield chunk
            yield chunk
        self.open_requests -= 1

    async def close(self) -> None:
        assert not self.open_requests, "a request was not released"


class NeedsUse(Doubler):
    used = False

    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        self.used = True
        async for chunk in request.chunks:
            yield chunk

    async def close(self) -> None:
        assert self.used


@pytest.mark.parametrize(
    ("test", "broken", "error"),
    [
        ("stage_yields_what_is_expected", LosesLast, AssertionError),
        ("stage_streams", Collects, AssertionError),
        ("stage_keeps_concurrent_requests_apart", Mixes, AssertionError),
        ("or10_an_error_of_upstream_fails_that_request_only", HidesErrors, AssertionError),
        ("or10_an_error_of_upstream_fails_that_request_only", BreaksAfterError, RuntimeError),
        ("stage_closed_at_any_yield_leaves_nothing", LeavesTasks, Leak),
        ("stage_closed_at_any_yield_leaves_nothing", BreaksAfterError, RuntimeError),
        ("stage_cancelled_while_it_waits_for_upstream_leaves_nothing", SwallowsCancels, AssertionError),
        ("stage_closes_after_a_cancel", CannotClose, AssertionError),
        ("stage_that_was_never_used_closes", NeedsUse, AssertionError),
    ],
)
def test_the_stage_suite_finds(test: str, broken: type[Doubler], error: type[Exception]) -> None:
    class Broken(TestDoubler):
        stage: ClassVar[type[Doubler]] = broken

    with pytest.raises(error):
        getattr(Broken(), f"test_{test}")()


def test_a_suite_without_samples_says_so() -> None:
    class Empty(TestDoubler):
        samples: ClassVar[Sequence[StageSample]] = ()

    with pytest.raises(AssertionError, match="at least one StageSample"):
        Empty().test_stage_has_samples()


def test_what_must_be_overridden_says_so() -> None:
    with pytest.raises(NotImplementedError, match="make_stage"):
        StageSuite().make_stage()
