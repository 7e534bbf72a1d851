"""Stopping: once, within a time, and with a report of what could not be sent (CH-12, CH-21)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from stagewire_chunks.inbox import Inbox
from stagewire_chunks.outbox import Outbox
from stagewire_chunks.watch import Watch
from stagewire_chunks.worker import Worker

_LEAST_JOIN = 0.1
"""Seconds that a thread has to end even when draining took all the time."""


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a stop went.

    Attributes:
        unsent: Chunks per request that were not put, or whose put had not returned.
        stuck: Names of threads that did not end in time: blocked in the transport, the builder or a callback. They are
            daemons, end when that returns, and commit nothing any more.
    """

    unsent: Mapping[str, int] = field(default_factory=dict)
    stuck: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether everything was sent and every thread has ended."""
        return not self.unsent and not self.stuck


class Stopper:
    """Owns the one stop of an adapter; every further call gets its report."""

    def __init__(
        self, outbox: Outbox, inbox: Inbox, workers: Sequence[Worker], drain: Callable[[float], object], watch: Watch
    ) -> None:
        self._outbox = outbox
        self._inbox = inbox
        self._workers = workers
        self._drain = drain
        self._watch = watch
        self._lock = threading.Lock()
        self._report: StopReport | None = None

    def stop(self, *, drain: bool, timeout: float) -> StopReport:
        """Stop, or wait for the stop under way; see `ChunkAdapter.stop`."""
        with self._lock:
            if self._report is None:
                self._report = self._stop(time.monotonic() + timeout, drain=drain)
            return self._report

    def _stop(self, deadline: float, *, drain: bool) -> StopReport:
        self._outbox.close()
        if drain:
            self._drain(deadline - time.monotonic())
        self._outbox.halt()
        self._inbox.halt()
        end = max(deadline, time.monotonic() + _LEAST_JOIN)
        stuck = [worker.name for worker in self._workers if not worker.join(end - time.monotonic())]
        report = StopReport(MappingProxyType(self._outbox.clear()), tuple(stuck))
        if not report.clean:
            self._watch.event("chunk.stop_unclean", unsent=sum(report.unsent.values()), stuck=stuck)
        return report
