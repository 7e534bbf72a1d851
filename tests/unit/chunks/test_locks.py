"""CH-13: no lock is held across transport I/O, payload building or a callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import ChunkKey, ChunkMessage, Permanent, TransportFull
from stagewire_chunks import ChunkAdapter, ChunkOptions

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import ManualClock, Recorder


class Inspector:
    """Tries, from wherever it is called, to take every lock of the adapter. Nobody else runs, so each must be free."""

    def __init__(self) -> None:
        self.adapter: ChunkAdapter | None = None
        self.places: set[str] = set()

    def look(self, place: str) -> None:
        self.places.add(place)
        if self.adapter is None:
            return
        for lock in (self.adapter._outbox.lock, self.adapter._inbox.lock, self.adapter._stopper._lock):
            assert lock.acquire(blocking=False), f"a lock is held in {place}"
            lock.release()


class InspectingWire:
    def __init__(self, inspector: Inspector) -> None:
        self._look = inspector.look
        self.store: dict[str, ChunkMessage] = {}
        self.hint: Callable[[], None] = lambda: None

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        self._look("put")
        if message["data"] == "poison":
            raise Permanent("no")
        if message["data"] == "full":
            raise TransportFull("full")
        self.store[key] = message
        self.hint()

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        self._look("get")
        if key.request == "broken":
            raise Permanent("no")
        return self.store.pop(key, None)

    def cleanup(self, _request: str) -> None:
        self._look("cleanup")

    def set_wakeup(self, hint: Callable[[], None]) -> None:
        self._look("set_wakeup")
        self.hint = hint


class InspectingManyWire(InspectingWire):
    def put_many(self, items: list[tuple[ChunkKey, ChunkMessage]]) -> list[Exception | None]:
        self._look("put_many")
        results: list[Exception | None] = []
        for key, message in items:
            try:
                self.put(key, message)
                results.append(None)
            except (Permanent, TransportFull) as error:
                results.append(error)
        return results

    def get_many(self, key: ChunkKey, _limit: int) -> list[ChunkMessage]:
        self._look("get_many")
        message = self.get(key)
        return [message] if message else []


class Payload:
    def __init__(self, inspector: Inspector) -> None:
        self._look = inspector.look

    def __deepcopy__(self, _memo: object) -> str:
        self._look("deepcopy")
        return "copied"


class Hooks:
    def __init__(self, inspector: Inspector, recorder: Recorder) -> None:
        self._look = inspector.look
        self._recorder = recorder

    def build(self, payload: Any) -> Any:
        self._look("build")
        return payload

    def on_ready(self) -> None:
        self._look("on_ready")

    def on_room(self, _request: str) -> None:
        self._look("on_room")

    def __getattr__(self, level: str) -> Callable[..., None]:
        self._look("log")
        return getattr(self._recorder, level)  # type: ignore[no-any-return]


def exercise(adapter: ChunkAdapter, inspector: Inspector, clock: ManualClock) -> None:
    for request in ("good", "bad", "broken", "silent", "cleaned"):
        adapter.load_async(request)
    adapter.save_async("good", Payload(inspector), False)
    adapter.save_async("bad", "poison", False)
    adapter.save_async("slow", "full", False)
    with pytest.raises(TransportFull):
        adapter.save_async("good", "too many", False)
    adapter.cleanup_receiver("cleaned")
    for _ in range(100):
        adapter.step_save()
        adapter.step_receive()
        adapter.poll_ready()
        clock.advance(0.2)
    adapter.cancel_sender("slow")
    adapter.poll_failed()
    adapter.stop(drain=True)


@pytest.mark.parametrize(
    ("kind", "build"), [(InspectingWire, True), (InspectingWire, False), (InspectingManyWire, False)]
)
def test_ch13_every_lock_is_free_wherever_foreign_code_runs(
    kind: type[InspectingWire], recorder: Recorder, make_clock: Callable[[], ManualClock], *, build: bool
) -> None:
    inspector = Inspector()
    hooks, clock = Hooks(inspector, recorder), make_clock()
    adapter = inspector.adapter = ChunkAdapter(
        kind(inspector),
        0,
        0,
        hooks.build if build else None,
        options=ChunkOptions(queue_chunks=3, stall_timeout=5.0, room_timeout=10.0),
        on_ready=hooks.on_ready,
        on_room=hooks.on_room,
        log=hooks,  # type: ignore[arg-type]
        clock=clock,
        threads=False,
    )
    exercise(adapter, inspector, clock)
    seen = {"put", "get", "cleanup", "set_wakeup", "deepcopy", "on_ready", "on_room", "log"}
    if build:
        seen.add("build")
    if kind is InspectingManyWire:
        seen |= {"put_many", "get_many"}
    assert inspector.places == seen
