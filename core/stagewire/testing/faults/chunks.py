"""A chunk transport that goes wrong on purpose."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from stagewire.spec.transport import ChunkKey, ChunkMessage, ChunkTransport
from stagewire.testing.faults.plan import Call, Fault, FaultPlan, Rule

T = TypeVar("T")


class FaultyTransport:
    """Wraps a `ChunkTransport` and does to its calls what the plan says. Thread-safe if what it wraps is.

    It has ``put_many``, ``get_many`` and ``set_wakeup`` if the wrapped one has them. A put that was told to be
    overtaken goes out after the next put that goes out, or at `flush` or ``close``.

    Args:
        inner: What carries the messages.
        plan: What goes wrong.
        sleep: Waits for a delay; for tests that must not wait.
    """

    def __init__(
        self, inner: ChunkTransport, plan: FaultPlan, *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self.inner = inner
        self.plan = plan
        self._sleep = sleep
        self._lock = threading.Lock()
        self._overtaken: list[tuple[ChunkKey, ChunkMessage]] = []
        self._again: dict[ChunkKey, ChunkMessage] = {}
        if hasattr(inner, "put_many"):
            self.put_many = self._put_many
        if hasattr(inner, "get_many"):
            self.get_many = self._get_many
        if hasattr(inner, "set_wakeup"):
            self.set_wakeup: Any = inner.set_wakeup

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Put a chunk, or not, or twice, as planned."""
        call = Call("put", key)
        rule = self.plan.choose(call)
        if rule is None:
            self._deliver(key, message)
        elif rule.fault is Fault.REORDER:
            with self._lock:
                self._overtaken.append((key, message))
        elif rule.fault is Fault.DUPLICATE:
            self._deliver(key, message)
            self.inner.put(key, message)
        elif rule.fault is not Fault.DROP:
            self._troubled(rule, call, lambda: self._deliver(key, message))

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        """Get a chunk: lost when dropped, twice when duplicated, not yet there when reordered."""
        call = Call("get", key)
        rule = self.plan.choose(call)
        if rule is None:
            return self._take(key)
        if rule.fault is Fault.REORDER:
            return None
        if rule.fault is Fault.DROP:
            self._take(key)
            return None
        if rule.fault is Fault.DUPLICATE:
            message = self._take(key)
            if message is not None:
                self._again[key] = message
            return message
        return self._troubled(rule, call, lambda: self._take(key))

    def cleanup(self, request_id: str) -> None:
        """Clean up, late, never, or with an error."""
        call = Call("cleanup", request_id)
        rule = self.plan.choose(call)
        if rule is None:
            self.inner.cleanup(request_id)
        elif rule.fault is not Fault.DROP:
            self._troubled(rule, call, lambda: self.inner.cleanup(request_id))

    def flush(self) -> None:
        """Put what waits to be overtaken."""
        with self._lock:
            overtaken, self._overtaken = self._overtaken, []
        for key, message in overtaken:
            self.inner.put(key, message)

    def close(self) -> None:
        """Flush and close what is wrapped."""
        self.flush()
        self.inner.close()

    def _put_many(self, items: Iterable[tuple[ChunkKey, ChunkMessage]]) -> list[Exception | None]:
        return [self._outcome(key, message) for key, message in items]

    def _get_many(self, key: ChunkKey, limit: int) -> list[ChunkMessage]:
        """Get one, whatever the limit, so that each key can have a fault of its own and none is lost with another's."""
        message = self.get(key) if limit > 0 else None
        return [] if message is None else [message]

    def _outcome(self, key: ChunkKey, message: ChunkMessage) -> Exception | None:
        try:
            self.put(key, message)
        except Exception as error:  # noqa: BLE001 — each item's error is its result
            return error
        return None

    def _deliver(self, key: ChunkKey, message: ChunkMessage) -> None:
        self.inner.put(key, message)
        if self._overtaken:
            self.flush()

    def _take(self, key: ChunkKey) -> ChunkMessage | None:
        return self._again.pop(key, None) or self.inner.get(key)

    def _troubled(self, rule: Rule, call: Call, act: Callable[[], T]) -> T:
        """Carry a call out late, or fail before or after it."""
        if rule.fault is Fault.FAIL:
            raise rule.error(call)
        if rule.fault is Fault.DELAY:
            self._sleep(rule.seconds)
        elif rule.fault is Fault.HANG:
            self.plan.gate.hold()
        result = act()
        if rule.fault is Fault.FAIL_AFTER:
            raise rule.error(call)
        return result
