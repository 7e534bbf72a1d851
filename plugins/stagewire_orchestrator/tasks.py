"""The running task, for telling a cancel of one's own from one that a client raised."""

from __future__ import annotations

import asyncio
from typing import Any


def own_task() -> asyncio.Task[Any]:
    """Return the task that runs; ``own_task().cancelling()`` says whether somebody asked it to cancel."""
    task = asyncio.current_task()
    assert task is not None, "called from a coroutine of a task"
    return task
