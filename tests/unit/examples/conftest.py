"""Drives a stage as a pipeline would, and keeps what it logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from stagewire import Stage, StageContext, StageRequest

Drive = Callable[[Stage, Iterable[Any]], list[Any]]


@pytest.fixture
def logs() -> LogCapture:
    return LogCapture()


@pytest.fixture
def context(logs: LogCapture) -> StageContext:
    log = structlog.wrap_logger(None, processors=[logs], wrapper_class=structlog.make_filtering_bound_logger(0))
    return StageContext(stage="under-test", replica=0, base=Path.cwd(), log=log)


@pytest.fixture
def drive(context: StageContext) -> Drive:
    """Run one request through a stage, from open to close, and return its chunks."""

    async def run(stage: Stage, chunks: Iterable[Any]) -> list[Any]:
        await stage.open(context)
        try:
            return [chunk async for chunk in stage.process(StageRequest("r1", chunks=_each(chunks)))]
        finally:
            await stage.close()

    return lambda stage, chunks: asyncio.run(run(stage, chunks))


async def _each(chunks: Iterable[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk
