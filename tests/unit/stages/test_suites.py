"""Stages made of functions keep the contract of every stage, wherever they run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import Any, cast

from stagewire import BlockingRequest, BuildContext, Options, Stage, StageRequest, stage_provider
from stagewire.testing import StageSample, StageSuite, StubContext

blocking_code: Any = import_module("unit.stages.blocking_code")  # by a name that a process of its own can import too


class Marks(Options):
    marks: int = 1


async def shout(request: StageRequest, options: Marks) -> AsyncIterator[str]:
    async for chunk in request.chunks:
        yield chunk.upper() + "!" * options.marks


def shout_blocking(request: BlockingRequest, options: Marks) -> Iterator[str]:
    for chunk in request.chunks:
        yield chunk.upper() + "!" * options.marks


async def joined(request: StageRequest) -> str:
    return "".join([chunk async for chunk in request.chunks])


SAMPLES = (StageSample(chunks=("a", "b", "c"), outputs=("A!", "B!", "C!")), StageSample())


def build(made_of: Any, options: Options | None = None, **how: Any) -> Stage:
    provider = stage_provider("test.stage", made_of, options=type(options or Options()), **how)
    return provider.factory(options or Options(), cast("BuildContext", StubContext()))


class TestAsyncGenerator(StageSuite):
    samples = SAMPLES

    def make_stage(self) -> Stage:
        return build(shout, Marks())


class TestCoroutine(StageSuite):
    samples = (StageSample(chunks=("a", "b"), outputs=("ab",)),)
    streams = False

    def make_stage(self) -> Stage:
        return build(joined)


class TestInline(StageSuite):
    samples = SAMPLES
    streams = False

    def make_stage(self) -> Stage:
        return build(shout_blocking, Marks())


class TestThread(StageSuite):
    samples = SAMPLES

    def make_stage(self) -> Stage:
        return build(shout_blocking, Marks(), blocking="thread")


class TestProcess(StageSuite):
    samples = SAMPLES

    def make_stage(self) -> Stage:
        return build(blocking_code.shout, blocking_code.Marks(), blocking="process")


class TestThreadClass(StageSuite):
    samples = (StageSample(chunks=("a", "b"), outputs=("stage: a!", "stage: b!")),)

    def make_stage(self) -> Stage:
        return build(blocking_code.Opened, blocking_code.Marks(), blocking="thread")
