"""What every subject of the RabbitMQ benchmark carries, and how its cost is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

TICK = os.sysconf("SC_CLK_TCK")
FLIGHT = 16 * 1024 * 1024
"""Bytes that a consumer lets the broker deliver ahead of its acknowledgements."""


@dataclass(frozen=True)
class Load:
    """So many requests at once, each with so many chunks of so many bytes."""

    requests: int
    chunks: int
    size: int

    @property
    def total(self) -> int:
        return self.requests * self.chunks

    @property
    def body(self) -> bytes:
        return os.urandom(self.size)

    @property
    def prefetch(self) -> int:
        return max(2, min(256, FLIGHT // self.size))

    @property
    def names(self) -> list[str]:
        return [f"r{number}" for number in range(self.requests)]


def cpu_of(group: int) -> float:
    """Return the CPU seconds that the processes of a group have used."""
    return sum(map(_cpu, (line for line in _stats() if int(line[2]) == group)))


def _cpu(fields: list[str]) -> float:
    return (int(fields[11]) + int(fields[12])) / TICK


def _stats() -> Iterator[list[str]]:
    """Yield what the system says of each process, from its state on."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            yield path.read_text().rpartition(")")[2].split()


@dataclass
class Meter:
    """Measures a block: wall time, CPU of this process and of the broker. Seconds.

    The broker goes on for a moment after the last acknowledgement was sent; the block waits for that outside the wall
    time.
    """

    broker: int  # its process group
    wall: float = 0.0
    client: float = 0.0
    server: float = 0.0
    _began: tuple[float, float, float] = field(default=(0.0, 0.0, 0.0), repr=False)

    def __enter__(self) -> Self:
        self._began = (time.perf_counter(), time.process_time(), cpu_of(self.broker))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wall, client, server = self._began
        self.wall = time.perf_counter() - wall
        self.client = time.process_time() - client
        time.sleep(0.1)
        self.server = cpu_of(self.broker) - server
