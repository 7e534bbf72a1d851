"""The contract of a `Stage`: what one request does to another, and what a cancel leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

from stagewire.spec.stage import Stage, StageRequest
from stagewire.spec.transport import StageId
from stagewire.testing.context import stage_context
from stagewire.testing.leaks import no_task_leaks
from stagewire.testing.suites.base import Suite, refused, scenario

G = TypeVar("G", bound="StageSuite")


@dataclass(frozen=True)
class StageSample:
    """One request to try a stage with, and what should come of it.

    Attributes:
        chunks: What upstream produces. They stand in ``inputs`` too when ``batch`` is set.
        outputs: What the stage yields; ``None`` when that is not compared.
        prompt: What the client gave.
        batch: Whether the stage stands behind batch edges.
        inputs_by_stage: As in `StageRequest`.
    """

    chunks: Sequence[Any] = ()
    outputs: Sequence[Any] | None = None
    prompt: Any = None
    batch: bool = False
    inputs_by_stage: Mapping[StageId, Sequence[Any]] = field(default_factory=dict)


class _UpstreamFailed(Exception):
    """What the upstream of a test fails with."""


def over_stage(test: Callable[[G, Stage], Awaitable[None]]) -> Callable[[G], None]:
    """Make a test of a coroutine method that takes an open stage."""
    return scenario(test, lambda suite: suite.opened())


class StageSuite(Suite):
    """Tests of a stage. Subclass it as ``Test…`` and override `make_stage` and ``samples``.

    Attributes:
        samples: Requests to try it with; at least one should yield several chunks.
        streams: Whether it yields its first chunk before it has read its last one.
        deterministic: Whether the same request yields the same chunks each time.
    """

    samples: ClassVar[Sequence[StageSample]] = ()
    streams: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    def make_stage(self) -> Stage:
        """Return a new stage that was not opened."""
        raise NotImplementedError("override make_stage()")

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Stage]:
        stage = self.make_stage()
        await stage.open(stage_context())
        try:
            yield stage
        finally:
            await stage.close()

    def opened(self) -> AbstractAsyncContextManager[Stage]:
        """Open a stage for the length of a block."""
        return self._opened()

    def request(self, sample: StageSample, chunks: AsyncIterator[Any] | None = None, name: str = "r") -> StageRequest:
        """Return a request of the sample, fed with its own chunks or with others."""
        return StageRequest(
            id=name,
            prompt=sample.prompt,
            chunks=feed(sample.chunks) if chunks is None else chunks,
            inputs=sample.chunks if sample.batch else (),
            inputs_by_stage=sample.inputs_by_stage,
        )

    async def outputs(self, stage: Stage, sample: StageSample, name: str = "r") -> list[Any]:
        """Run a request to its end and return what it yields."""
        return [output async for output in stage.process(self.request(sample, name=name))]

    def test_stage_has_samples(self) -> None:
        assert self.samples, "give the suite at least one StageSample"

    def test_stage_that_was_never_used_closes(self) -> None:
        async def main() -> None:
            async with self.opened():
                pass

        self.check(main())

    @over_stage
    async def test_stage_yields_what_is_expected(self, stage: Stage) -> None:
        for number, sample in enumerate(self.samples):
            got = await self.outputs(stage, sample)
            if sample.outputs is not None:
                assert got == list(sample.outputs), f"sample {number} yielded {got!r}"

    @over_stage
    async def test_stage_streams(self, stage: Stage) -> None:
        for number, sample in enumerate(self.samples):
            if not self.streams or sample.batch or len(sample.chunks) < 2:
                continue
            left = list(sample.chunks)
            async with running(stage, self.request(sample, drain(left))) as outputs:
                async for _ in outputs:
                    assert left, f"sample {number}: the first chunk came only after all of the input was read"
                    break

    @over_stage
    async def test_stage_keeps_concurrent_requests_apart(self, stage: Stage) -> None:
        if not self.deterministic:
            return
        for sample in self.samples:
            alone = await self.outputs(stage, sample)
            for other in self.samples:
                async with asyncio.TaskGroup() as group:
                    first = group.create_task(self.outputs(stage, sample, "one"))
                    group.create_task(self.outputs(stage, other, "two"))
                assert first.result() == alone, "a request beside another yields what it yields alone"

    @over_stage
    async def test_or10_an_error_of_upstream_fails_that_request_only(self, stage: Stage) -> None:
        for sample in self.samples:
            if not sample.batch and sample.chunks:
                failing = self.request(sample, feed(sample.chunks[:-1], failing=True))
                await refused(_UpstreamFailed, collect(stage, failing), "a request whose upstream fails")
                await self.still_works(stage, sample)

    @over_stage
    async def test_stage_closed_at_any_yield_leaves_nothing(self, stage: Stage) -> None:
        for sample in self.samples:
            total = len(await self.outputs(stage, sample))
            for taken in range(total + 1):
                async with no_task_leaks(), running(stage, self.request(sample)) as outputs:
                    await take(outputs, taken)
            await self.still_works(stage, sample)

    @over_stage
    async def test_stage_cancelled_while_it_waits_for_upstream_leaves_nothing(self, stage: Stage) -> None:
        for sample in self.samples:
            for count in range(len(sample.chunks)) if not sample.batch else ():
                waiting = asyncio.Event()
                request = self.request(sample, feed(sample.chunks[:count], stuck=waiting))
                async with no_task_leaks():
                    task = asyncio.create_task(collect(stage, request))
                    await self.eventually(waiting.is_set, "the stage asks for its next chunk")
                    task.cancel()
                    await refused(asyncio.CancelledError, task, "a cancelled request")
            await self.still_works(stage, sample)

    def test_stage_closes_after_a_cancel(self) -> None:
        async def main(sample: StageSample) -> None:
            async with self.opened() as stage, running(stage, self.request(sample)) as outputs:
                await take(outputs, 1)

        for sample in self.samples:
            self.check(main(sample))

    async def still_works(self, stage: Stage, sample: StageSample) -> None:
        """Fail when a request after another one's bad end does not do what it should."""
        got = await self.outputs(stage, sample, "after")
        if sample.outputs is not None:
            assert got == list(sample.outputs), f"after another request's bad end it yields {got!r}"


async def feed(
    chunks: Iterable[Any], *, failing: bool = False, stuck: asyncio.Event | None = None
) -> AsyncIterator[Any]:
    """Yield the chunks, one per turn of the loop; then end, fail, or set ``stuck`` and never go on."""
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk
    if stuck is not None:
        stuck.set()
        await asyncio.Event().wait()
    if failing:
        raise _UpstreamFailed("upstream failed")


async def drain(chunks: list[Any]) -> AsyncIterator[Any]:
    """Yield the chunks and take each out of the list as it is asked for."""
    while chunks:
        await asyncio.sleep(0)
        yield chunks.pop(0)


def running(stage: Stage, request: StageRequest) -> AbstractAsyncContextManager[AsyncGenerator[Any, None]]:
    """Run a request for the length of a block and close it at the end, as the runtime does when it is cancelled."""
    return aclosing(cast("AsyncGenerator[Any, None]", stage.process(request)))


async def take(outputs: AsyncIterator[Any], count: int) -> None:
    """Take so many chunks, or all if there are fewer."""
    for _ in range(count):
        await anext(outputs, None)


async def collect(stage: Stage, request: StageRequest) -> list[Any]:
    """Run a request to its end, closing it as the runtime does."""
    async with running(stage, request) as outputs:
        return [output async for output in outputs]
