"""One request in a stage of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stagewire import Stage, StageId, To
from stagewire_orchestrator.clients import ORCHESTRATOR, Doing, Submission, call
from stagewire_orchestrator.edges import Route
from stagewire_orchestrator.feeds import Feeds
from stagewire_orchestrator.links import OutEnd
from stagewire_orchestrator.mailbox import Mailbox
from stagewire_orchestrator.outputs import Mark, StageOutput
from stagewire_orchestrator.prompts import make_request
from stagewire_orchestrator.windows import Window

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class LocalRun:
    """Runs ``process`` for one request, and carries what it yields to the edges and to the orchestrator.

    Attributes:
        submission: The request.
        feeds: Its inputs over chunk edges, if the stage has such.
        window: What is on its way to the orchestrator; ``None`` when nothing goes there.
        doing: What it does just now.
        task: The task that runs it.
        failure: Why an edge failed it from outside.
        over: Whether it was aborted; a stage that does not let itself be cancelled puts nothing out any more.
    """

    def __init__(
        self,
        submission: Submission,
        *,
        outs: Mapping[StageId, OutEnd],
        route: Route | None,
        window: Window | None,
        outputs: Mailbox[StageOutput],
        marks: bool = False,
    ) -> None:
        self.submission = submission
        self.feeds: Feeds | None = None
        self.window = window
        self.doing: Doing = "running"
        self.task: asyncio.Task[None] | None = None
        self.failure: Exception | None = None
        self.over = False
        self._outs = outs
        self._route = route
        self._outputs = outputs
        self._marks = marks
        resume = submission.resume
        self._have: Mapping[StageId, int] = {} if resume is None else resume.have
        self._inputs = self._input = 0 if resume is None else resume.first_input
        self._count = self._first = self._started_at = 0 if resume is None else resume.first_output

    def starved(self, waits: bool) -> None:  # noqa: FBT001 — a flag is what it takes
        """Note that the stage waits for input, or no longer."""
        self.doing = "starved" if waits else "running"

    @property
    def moves(self) -> int:
        """How many chunks came in or went out."""
        return (
            self._count
            - self._started_at
            + (sum(feed.taken for feed in self.feeds.feeds) if self.feeds is not None else 0)
        )

    def fail(self, error: Exception) -> None:
        """End it from outside, with this error."""
        self.failure = error
        if self.task is not None:
            self.task.cancel()

    async def work(self, stage: Stage) -> None:
        """Run the stage to the end of the request. Raises what it raises."""
        chunks = self._noted(self.feeds.chunks()) if self.feeds is not None else None
        stream = stage.process(make_request(self.submission, chunks))
        try:
            await self._carry(stream)
        finally:
            await call(getattr(stream, "aclose", None))

    def finish(self) -> None:
        """Say to every edge that all was sent, and want no further input."""
        for end in self._outs.values():
            end.finish(self.submission.wire_id)
        if self.feeds is not None:
            self.feeds.discard()

    async def sent(self) -> None:
        """Wait until everything is on its way that does not depend on this process any more."""
        self.doing = "blocked"
        for end in self._outs.values():
            await end.sent(self.submission.wire_id)

    def cancel(self) -> None:
        """Drop what is on its way, in both directions."""
        for end in self._outs.values():
            end.cancel(self.submission.wire_id)
        if self.feeds is not None:
            self.feeds.discard()

    async def _carry(self, stream: AsyncIterator[Any]) -> None:
        async for chunk in stream:
            if isinstance(chunk, To):
                await self._put(chunk.chunk, chunk.stage)
            else:
                await self._put(chunk, None)

    async def _noted(self, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass the inputs on, noting which one is in hand: what is put out until the next one is made of it."""
        async for chunk in chunks:
            self._input, self._first = self._inputs, self._count
            self._inputs += 1
            yield chunk

    async def _put(self, chunk: Any, to: StageId | None) -> None:
        if self.over:
            raise asyncio.CancelledError
        wire, window = self.submission.wire_id, self.window
        mark = Mark(self._input, self._first, self._count) if self._marks else None
        self.doing = "blocked"
        for target in self._targets(to):
            if self._count >= self._have.get(target, 0):
                await self._outs[target].send(wire, chunk, mark)
        if window is not None and self._count >= self._have.get(ORCHESTRATOR, 0):
            await window.acquire(chunk)
            self._outputs.put(StageOutput(wire, chunk, to=to, mark=mark))
        self.doing = "running"
        self._count += 1

    def _targets(self, to: StageId | None) -> list[StageId]:
        if self._route is None:
            return list(self._outs)
        return [target for target in self._route(self._count, to) if target in self._outs]
