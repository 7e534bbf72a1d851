"""Goes through the sources and makes tallies: in this process, or a large file in stretches on all processors."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context

from stagewire_logs.filters import Filter
from stagewire_logs.reading import Reader
from stagewire_logs.sources import Part, blocks
from stagewire_logs.tally import Tally

STRETCH = 16 * 1024 * 1024
"""Bytes of one stretch: what memory, the work lost to Ctrl-C, and the steps of the progress bar are measured by."""

ALONE = 4 * STRETCH
"""Bytes below which a file is not worth a second process."""

UNCOLLECTED = 100_000
"""Objects that may come to be before Python looks for cycles among them; counting makes many objects and no cycles."""

Problem = Callable[[str, str], None]
"""Takes the name of a source and why it could not be read to its end."""


def scan(
    parts: Sequence[Part], keep: Filter, problem: Problem, *, processes: int | None = None
) -> Iterator[tuple[str, Tally]]:
    """Yield the tallies of all parts in order, each with the name of its source. Memory is bounded (LG-7).

    Args:
        parts: What to read.
        keep: Which lines count.
        problem: Told of sources that cannot be read to their end; the others go on.
        processes: How many processes work on large plain files; default: one for each processor.
    """
    workers = processes or os.cpu_count() or 1
    for part in parts:
        large = part.path is not None and not part.compression and part.size > ALONE
        if large and workers > 1:
            yield from _in_parallel(part, keep, problem, workers)
        else:
            yield from _in_turn(part, keep, problem)


def _in_turn(part: Part, keep: Filter, problem: Problem) -> Iterator[tuple[str, Tally]]:
    faults: list[str] = []
    for tally in stretches(part, keep, faults):
        yield part.name, tally
    for fault in faults:
        problem(part.name, fault)


def _in_parallel(part: Part, keep: Filter, problem: Problem, workers: int) -> Iterator[tuple[str, Tally]]:
    """Have each stretch counted by some process, and take the results in order, a few ahead at most.

    The processes are forked before this one has a second thread: they start at once and share its memory.
    """
    todo = _split(part)
    waiting: list[Future[tuple[list[Tally], list[str]]]] = []
    with ProcessPoolExecutor(workers, mp_context=get_context("fork"), initializer=_ignore_interrupts) as pool:
        try:
            while True:
                while len(waiting) <= workers and (each := next(todo, None)) is not None:
                    waiting.append(pool.submit(count, each, keep))
                if not waiting:
                    return
                tallies, faults = waiting.pop(0).result()
                yield from ((part.name, tally) for tally in tallies)
                for fault in faults:
                    problem(part.name, fault)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that reports: what is being counted is finished or dropped."""
    import signal  # noqa: PLC0415 — only in a worker process

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _split(part: Part) -> Iterator[Part]:
    for start in range(0, part.size, STRETCH):
        end = start + STRETCH
        yield replace(part, start=start, end=end if end < part.size else None, size=min(STRETCH, part.size - start))


def count(part: Part, keep: Filter) -> tuple[list[Tally], list[str]]:
    """Return the tallies of a whole part, and why it could not be read to its end."""
    faults: list[str] = []
    return list(stretches(part, keep, faults)), faults


def stretches(part: Part, keep: Filter, faults: list[str]) -> Iterator[Tally]:
    """Yield tallies of a part, one for every `STRETCH` bytes, and note why it could not be read to its end."""
    with _rare_collection():
        yield from _counted(part, keep, faults)


@contextmanager
def _rare_collection() -> Iterator[None]:
    young, *older = gc.get_threshold()
    gc.set_threshold(max(young, UNCOLLECTED), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)


def _counted(part: Part, keep: Filter, faults: list[str]) -> Iterator[Tally]:
    reader = Reader(part.name)
    tally = _next_tally(reader)
    for block in blocks(part, broken=faults.append, oversized=reader.oversized):
        tally.size += len(block)
        before = reader.seen
        batch = keep.apply(reader.read(block))
        tally.add(batch, part.name, before)
        tally.lines = reader.seen
        if tally.size >= STRETCH:
            yield tally
            tally = _next_tally(reader)
    tally.lines = reader.seen
    yield tally


def _next_tally(reader: Reader) -> Tally:
    tally = Tally()
    tally.damage, tally.foreign = reader.restart()
    return tally
