"""The live state as a table for a terminal, readable at 80 columns (CSP-16)."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Self

from stagewire_csp.findings import Finding
from stagewire_csp.rates import Rates
from stagewire_csp.snapshot import PermitState, SideState, Snapshot

if TYPE_CHECKING:  # whoever has no terminal does not wait for rich to be imported
    from rich.console import Console, Group

BAR = 10
"""Cells of a bar."""

COLUMNS = (
    ("", 8),
    ("held", 9),
    ("", BAR),
    ("wait", 5),
    ("stock", 5),
    ("oldest", 6),
    ("gate", 4),
    ("consumed", 8),
    ("lost", 5),
)
"""What heads each column, and its least width: the table does not jump about."""

WINDOW = 5.0
"""Seconds over which a live view takes its rates."""


def render(state: Snapshot, findings: tuple[Finding, ...] = (), rates: Rates | None = None) -> Group:
    """Return the state as a table, beneath it the rates, and beneath them what is wrong. A pure function."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 — see above
    from rich.console import Group  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    title = f"{_count(state.pairs)} pairs in {_seconds(state.uptime)}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column, width in COLUMNS:
        table.add_column(column, justify="right" if column else "left", no_wrap=True, min_width=width)
    table.add_row("T", *_permits(state.t.slots), *_stock(state.t))
    table.add_row("Q", *_permits(state.q.slots), *_stock(state.q))
    table.add_row("physical", *_permits(state.physical))
    table.add_row("pending", *_permits(state.q_pending))
    table.add_row("claims", "", "", _count(state.claims), "", _age(state.claim_age))
    lines = [] if rates is None else [Text(_pace(rates), style="dim")]
    lines += [Text(f"! {finding.text}", style="yellow") for finding in findings]
    return Group(table, *lines)


def _pace(rates: Rates) -> str:
    parts = {
        "T": rates.t_produced,
        "Q": rates.q_produced,
        "pairs": rates.pairs,
        "expired": rates.expired,
        "written off": rates.written_off,
        "failures": rates.failures,
    }
    return "a second: " + ", ".join(f"{rate:.1f} {name}" for name, rate in parts.items())


class Pace:
    """Takes the rates of the last seconds from the snapshots it is shown."""

    def __init__(self) -> None:
        self._before: Snapshot | None = None
        self._seen: deque[Snapshot] = deque()

    def at(self, state: Snapshot) -> Rates:
        """Return the rates up to this state, over ``WINDOW`` or since the start."""
        self._seen.append(state)
        while self._seen[0].uptime < state.uptime - WINDOW:
            self._before = self._seen.popleft()
        return Rates.between(self._before, state)


def _permits(state: PermitState) -> tuple[str, str, str]:
    full = round(BAR * state.held / state.cap)
    return f"{_count(state.held)}/{_count(state.cap)}", "█" * full + "░" * (BAR - full), _count(state.waiting)


def _stock(side: SideState) -> tuple[str, str, str, str, str]:
    gate = "open" if side.gate_open else "shut"
    return _count(side.depth), _age(side.age), gate, _count(side.consumed), _count(side.written_off + side.expired)


def _count(number: int) -> str:
    """Write a number in five characters at most, up to a thousand billions."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= 10 * size:
            return f"{number // size}{letter}"
    return str(number)


def _age(seconds: float | None) -> str:
    return "" if seconds is None else _seconds(seconds)


def _seconds(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{seconds:.1f}s"


class LiveView:
    """Shows the state on a terminal while a run works; does nothing when the console is no terminal.

    ``with LiveView(console) as view: await CspRuntime(…, on_beat=view.show).run()``. A console shows one live display
    at a time: beside a progress bar, put `render` into that instead.

    Args:
        console: Where to show it. Default: standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console  # noqa: PLC0415 — see above
        from rich.live import Live  # noqa: PLC0415

        console = console or Console(stderr=True)
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._pace = Pace()

    def show(self, state: Snapshot, findings: tuple[Finding, ...] = ()) -> None:
        """Show this state."""
        if self._live is not None:
            self._live.update(render(state, findings, self._pace.at(state)), refresh=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
