"""SIGTERM and Ctrl-C run the one stop path (SD-8)."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from stagewire.errors import StagewireError, bounded, describe
from stagewire.events import emit
from stagewire.logs import fallback_logger

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from stagewire.spec.pipeline import RunReport

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""What an operator or a terminal sends to end a program."""

MAX_WAITING_TEXT = 500
"""Characters of what is being waited for."""


class ForcedStop(StagewireError):
    """The deadline after a stop signal passed and the work was cancelled where it stood.

    Attributes:
        signal: The signal that asked for the stop.
        waited_for: What had not ended, as a person would say it.
        report: What the work had come to, where whoever ran it knows.
    """

    report: RunReport | None = None

    def __init__(self, number: signal.Signals, deadline: float, waited_for: str) -> None:
        self.signal = number
        self.waited_for = waited_for
        super().__init__(f"forced to end {deadline:g} s after {number.name}, still waiting for {waited_for}")


class stop_on_signals:  # noqa: N801 — used as a function is, like asyncio.timeout
    """Run the stop path when SIGTERM or Ctrl-C comes: ``async with stop_on_signals(stop.set) as stopping: …`` (SD-8).

    The first signal calls ``stop``; the block then ends by itself. A further one within the deadline says what is being
    waited for. When the deadline passes, the task that entered the block is cancelled and the block raises
    `ForcedStop`; from then on a signal has the effect that it had before. Leaving the block puts the previous handlers
    back. Outside the main thread Python delivers no signals: there this does nothing.

    Args:
        stop: Starts the stop path with a reason; called on the event loop, returns at once: `StopSignal.set`.
        deadline: Seconds from the first signal to the forced end.
        waiting_for: Says in a few words what has not ended.
        tell: Takes one line for a person, beside the log.
        log: Takes the events ``stop.*``. Default: warnings on standard error.
        signals: Which signals ask for the stop.

    Attributes:
        signal: The first signal that came, or ``None``.
        forced: Whether the deadline passed; a stop that was not forced was clean.
    """

    def __init__(
        self,
        stop: Callable[[str], object],
        *,
        deadline: float = 30.0,
        waiting_for: Callable[[], str] = lambda: "the work to end",
        tell: Callable[[str], None] = lambda _line: None,
        log: FilteringBoundLogger | None = None,
        signals: Iterable[signal.Signals] = STOP_SIGNALS,
    ) -> None:
        self.signal: signal.Signals | None = None
        self.forced = False
        self._stop = stop
        self._deadline = deadline
        self._waiting_for = waiting_for
        self._tell = tell
        self._log = log
        self._signals = tuple(signals)
        self._previous: dict[signal.Signals, Any] = {}
        self._caught: deque[signal.Signals] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._waited_for = ""

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._cancels_before = self._task.cancelling() if self._task is not None else 0
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
        if self._timer is not None:
            self._timer.cancel()
        if self._caught and self.signal is None:
            self.signal = self._caught[0]  # it came as the block was left: there is nothing to stop, but it did come
        self._caught.clear()
        if self.forced:
            self._end_forced(error)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        # Runs between any two bytecodes of the main thread: hand over to the loop and touch nothing else.
        self._caught.append(signal.Signals(number))
        self._loop.call_soon_threadsafe(self._handle)

    def _handle(self) -> None:
        if not self._caught:
            return
        number = self._caught.popleft()
        if self.signal is None:
            self._begin(number)
        else:
            self._say_what_is_left(number)

    def _begin(self, number: signal.Signals) -> None:
        self.signal = number
        self._timer = self._loop.call_later(self._deadline, self._force)
        self._stop(number.name)
        self._emit("stop.requested", signal=number.name, deadline=self._deadline)
        self._tell(f"{number.name}: stopping, for at most {self._deadline:g} s; once more says what it is waiting for")

    def _say_what_is_left(self, number: signal.Signals) -> None:
        left = self._left()
        self._emit("stop.waiting", signal=number.name, waiting_for=left)
        self._tell(f"{number.name}: still waiting for {left}")

    def _force(self) -> None:
        assert self._task is not None, "entered from a task"
        assert self.signal is not None, "the timer is set by the first signal"
        self.forced = True
        self._waited_for = self._left()
        self._restore()
        self._task.cancel()
        self._emit("stop.forced", signal=self.signal.name, waiting_for=self._waited_for, deadline=self._deadline)
        self._tell(f"forced to end: still waiting for {self._waited_for}")

    def _end_forced(self, error: BaseException | None) -> None:
        assert self._task is not None, "entered from a task"
        assert self.signal is not None, "a forced end follows a signal"
        others = self._task.uncancel()
        if isinstance(error, asyncio.CancelledError) and others == self._cancels_before:
            raise ForcedStop(self.signal, self._deadline, self._waited_for) from error

    def _left(self) -> str:
        try:
            return bounded(self._waiting_for(), MAX_WAITING_TEXT)
        except Exception as error:  # noqa: BLE001 — a stop goes on, whether or not it can be described
            return f"(cannot be said: {describe(error, MAX_WAITING_TEXT)})"

    def _restore(self) -> None:
        while self._previous:
            number, handler = self._previous.popitem()
            if handler is not None:  # None: installed by other than Python, which cannot put it back
                signal.signal(number, handler)

    def _emit(self, event: str, **fields: object) -> None:
        emit(self._log or fallback_logger(), event, **fields)
