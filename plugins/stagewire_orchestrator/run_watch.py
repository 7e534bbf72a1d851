"""What a person sees of a run while it goes on, and what its report says afterwards."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from stagewire import Job, Progress
from stagewire_orchestrator.outputs import OrchOutput

OBSERVE_EVERY = 0.1
"""Seconds between two reports of progress."""


class RunWatch:
    """Counts what goes in and what comes out, and reports progress now and then.

    Attributes:
        missed: Whether a stage asked for an input that there is not.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._time = asyncio.get_running_loop().time
        self._began = self._time()
        self._told = self._began - OBSERVE_EVERY
        self._read = 0
        self.missed = False
        self._chunks: Counter[str] = Counter()

    def miss(self) -> None:
        """A stage asks for the input, and there is none."""
        self.missed = True

    def read(self, count: int) -> None:
        """So many bytes of the input were read in all."""
        self._read = count
        self.tell()

    def put(self, output: OrchOutput) -> None:
        """An output came."""
        self._chunks[str(output.stage_id)] += 1
        self.tell()

    def tell(self, *, anyway: bool = False) -> None:
        """Report progress, unless that was done just now."""
        now = self._time()
        if anyway or now - self._told >= OBSERVE_EVERY:
            self._told = now
            total = None if self._job.input is None else self._job.input.size
            self._job.observe(Progress(self._read, total, dict(self._chunks)))

    def rows(self) -> list[tuple[str, str]]:
        """Return the summary table."""
        rows = [("time", f"{self._time() - self._began:.2f} s")]
        if self._job.input is not None:
            rows.append(("input", f"{self._read:,} bytes of {self._job.input.name}"))
        elif self.missed:
            rows.append(("input", "none; give one with --input PATH, or - for standard input"))
        return rows

    def details(self) -> dict[str, Any]:
        """Return the same for programs."""
        seconds = round(self._time() - self._began, 3)
        return {"seconds": seconds, "input_bytes": self._read, "chunks": dict(self._chunks)}
