"""How far a run is, for a person who watches a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stagewire.spec.pipeline import Progress

Observe = Callable[[Progress], None]


def ignore(_progress: Progress) -> None:
    """Show nothing."""


@contextmanager
def bar(title: str) -> Iterator[Observe]:
    """Show a bar on standard error while the block runs, and wipe it away at its end."""
    from rich import progress as rich  # noqa: PLC0415 — takes 0.15 s, and only a terminal needs it
    from rich.console import Console  # noqa: PLC0415 — same
    from rich.markup import escape  # noqa: PLC0415 — same

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("{task.fields[counters]}"),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(escape(title), total=None, counters="")

        def observe(progress: Progress) -> None:
            counters = " ".join(f"{name} {count:,}" for name, count in progress.counters.items())
            display.update(task, completed=progress.done, total=progress.total, counters=escape(counters))

        yield observe
