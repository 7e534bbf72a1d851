"""How far a run is, for a person who watches a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stagewire.spec.pipeline import Progress

Observe = Callable[["Progress"], None]

FRAMES = 10
"""How often a second what is shown is drawn anew."""


def ignore(_progress: Progress) -> None:
    """Show nothing."""


@contextmanager
def display(title: str) -> Iterator[Observe]:
    """Show a bar on standard error while the block runs, or what the pipeline shows of itself; wiped away at the end.

    What else is printed meanwhile scrolls by above it.
    """
    from rich.console import Console  # noqa: PLC0415 — takes 0.15 s, and only a terminal needs it
    from rich.live import Live  # noqa: PLC0415 — same

    bar = _Bar(title)
    live = Live(get_renderable=bar.show, console=Console(stderr=True), transient=True, refresh_per_second=FRAMES)
    with live:
        yield bar.observe


class _Bar:
    """A bar with counters, which gives way to the view of a pipeline that has one."""

    def __init__(self, title: str) -> None:
        from rich import progress as rich  # noqa: PLC0415 — see display
        from rich.markup import escape  # noqa: PLC0415 — same

        self._escape = escape
        self._bar = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.TaskProgressColumn(),
            rich.TimeElapsedColumn(),
            rich.TextColumn("{task.fields[counters]}"),
            auto_refresh=False,
        )
        self._task = self._bar.add_task(escape(title), total=None, counters="")
        self._view: Callable[[], Any] | None = None

    def observe(self, progress: Progress) -> None:
        """Take what is to be shown."""
        self._view = progress.view
        counters = " ".join(f"{name} {count:,}" for name, count in progress.counters.items())
        self._bar.update(self._task, completed=progress.done, total=progress.total, counters=self._escape(counters))

    def show(self) -> Any:
        """Return what rich is to draw. A view that fails must not break the run: the bar takes its place."""
        if self._view is not None:
            with suppress(Exception):
                return self._view()
        return self._bar.get_renderable()
