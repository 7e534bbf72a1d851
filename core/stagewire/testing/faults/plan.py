"""Which call gets which fault: scripted, by chance from a seed, or both."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, Self

from stagewire.errors import Retryable
from stagewire.spec.transport import ChunkKey

Operation = Literal["put", "get", "cleanup", "request"]


class Fault(Enum):
    """What may happen to a call."""

    DROP = "drop"
    """It reports success, and the message is lost."""
    DUPLICATE = "duplicate"
    """The message arrives twice."""
    DELAY = "delay"
    """The call takes longer."""
    REORDER = "reorder"
    """The message is overtaken by the next one."""
    FAIL = "fail"
    """The call raises and has done nothing."""
    FAIL_AFTER = "fail_after"
    """The call raises although it was carried out."""
    HANG = "hang"
    """The call does not return before `FaultPlan.release`; then it is carried out."""


class Call(NamedTuple):
    """One call, as a rule sees it: the subject is a chunk's key, a request's id or a mailbox's name."""

    operation: Operation
    subject: ChunkKey | str


@dataclass(slots=True)
class Rule:
    """A fault for the next ``times`` calls (``None``: all) that ``when`` picks."""

    fault: Fault
    when: Callable[[Call], bool]
    times: int | None
    seconds: float
    error: Callable[[Call], Exception]


def _failure(call: Call) -> Exception:
    return Retryable(f"injected failure of {call.operation} {str(call.subject)!r}")


class FaultPlan:
    """Decides the fault of each call. Thread-safe, and usable for any number of transports at once.

    Args:
        seed: With ``rates``, what chance begins with; the same seed and calls give the same faults.
        rates: How probable each fault is for any call.
        seconds: How long a random delay takes.
    """

    def __init__(
        self, *, seed: int | None = None, rates: Mapping[Fault, float] | None = None, seconds: float = 0.001
    ) -> None:
        if rates and seed is None:
            raise ValueError("random faults need a seed, so that a failure can be had again")
        self.gate = Gate()
        self.injected: Counter[Fault] = Counter()
        self._rules: list[Rule] = []
        self._random = random.Random(seed)  # noqa: S311 — faults to be had again, not secrets
        self._rates = dict(rates or {})
        self._seconds = seconds
        self._lock = threading.Lock()

    def add(
        self,
        fault: Fault,
        *,
        on: Operation = "put",
        when: Callable[[ChunkKey | str], bool] = lambda _subject: True,
        times: int | None = 1,
        seconds: float | None = None,
        error: Callable[[Call], Exception] = _failure,
    ) -> Self:
        """Give the fault to the next ``times`` calls of ``on`` whose subject ``when`` picks; earlier rules go first."""

        def picks(call: Call) -> bool:
            return call.operation == on and when(call.subject)

        delay = self._seconds if seconds is None else seconds
        with self._lock:
            self._rules.append(Rule(fault, picks, times, delay, error))
        return self

    def choose(self, call: Call) -> Rule | None:
        """Return what happens to a call, and count it."""
        with self._lock:
            rule = self._scripted(call) or self._by_chance()
            if rule is not None:
                self.injected[rule.fault] += 1
            return rule

    def clear(self) -> None:
        """Let all later calls pass."""
        with self._lock:
            self._rules.clear()
            self._rates.clear()

    def release(self) -> None:
        """Let go of all calls that hang; later ones hang again."""
        self.gate.open()

    def _scripted(self, call: Call) -> Rule | None:
        for rule in self._rules:
            if rule.when(call):
                if rule.times is not None:
                    rule.times -= 1
                    if rule.times <= 0:
                        self._rules.remove(rule)
                return rule
        return None

    def _by_chance(self) -> Rule | None:
        if not self._rates:
            return None
        at = self._random.random()
        for fault, rate in self._rates.items():
            if at < rate:
                return Rule(fault, lambda _call: True, None, self._seconds, _failure)
            at -= rate
        return None


class Gate:
    """Holds calls of threads and of tasks until it is opened; ``waiting`` is how many it holds."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._opened = 0
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.waiting = 0

    def hold(self) -> None:
        """Hold the calling thread."""
        with self._changed:
            opened = self._opened
            self.waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._opened != opened)
            self.waiting -= 1

    async def hold_task(self) -> None:
        """Hold the calling task."""
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        with self._changed:
            self._sleepers.append((loop, sleeper))
            self.waiting += 1
            self._changed.notify_all()
        try:
            await sleeper
        finally:
            with self._changed:
                self.waiting -= 1

    def open(self) -> None:
        """Let go of everything that is held now."""
        with self._changed:
            self._opened += 1
            self._changed.notify_all()
            sleepers, self._sleepers = self._sleepers, []
        for loop, sleeper in sleepers:
            loop.call_soon_threadsafe(_wake, sleeper)

    def wait_held(self, count: int = 1, timeout: float = 10.0) -> None:
        """Block until ``count`` calls are held. Raises `TimeoutError`."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.waiting >= count, timeout):
                raise TimeoutError(f"{self.waiting} of {count} calls hang after {timeout:g} s")


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
