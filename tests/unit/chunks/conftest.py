from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from stagewire import ChunkKey
from stagewire_chunks import ChunkAdapter, ChunkOptions

PATIENCE = 20.0
"""Seconds after which a test gives up waiting for another thread; never reached when all is well."""

Message = Mapping[str, Any]


class Conn:
    """The source's transport double."""

    def __init__(self) -> None:
        self.puts: list[str] = []
        self.store: dict[str, Message] = {}

    def put(self, key: str, message: Message) -> None:
        self.puts.append(key)
        self.store[key] = message

    def get(self, key: str) -> Message | None:
        return self.store.pop(key, None)


class Wire(Conn):
    """A double that a test can make fail, block or look: the hooks run before the transport does anything."""

    def __init__(self) -> None:
        super().__init__()
        self.on_put: Callable[[ChunkKey, Message], object] = lambda _key, _message: None
        self.on_get: Callable[[ChunkKey], object] = lambda _key: None
        self.attempts: list[str] = []
        self.messages: list[Message] = []
        self.gets: list[str] = []

    def put(self, key: str, message: Message) -> None:
        assert isinstance(key, ChunkKey)
        self.attempts.append(key)
        self.on_put(key, message)
        self.messages.append(message)
        super().put(key, message)

    def get(self, key: str) -> Message | None:
        assert isinstance(key, ChunkKey)
        self.gets.append(key)
        self.on_get(key)
        return super().get(key)


class KeepingWire(Wire):
    """A double that keeps runs, as `stagewire.ChunkTransport` promises: the first message under a key counts.

    With ``delivers_failures`` a chunk whose put raises has arrived all the same, as one that timed out may have.
    """

    def __init__(self) -> None:
        super().__init__()
        self.delivers_failures = False
        self.cleaned: list[str] = []
        self._seen: set[ChunkKey] = set()
        self._ended: set[str] = set()

    def put(self, key: str, message: Message) -> None:
        assert isinstance(key, ChunkKey)
        self.attempts.append(key)
        try:
            self.on_put(key, message)
        except Exception:
            if self.delivers_failures:
                self._keep(key, message)
            raise
        self._keep(key, message)

    def cleanup(self, request: str) -> None:
        self.cleaned.append(request)
        for key in [key for key in self.store if isinstance(key, ChunkKey) and key.request == request]:
            del self.store[key]

    def _keep(self, key: ChunkKey, message: Message) -> None:
        if key in self._seen or key.request in self._ended:
            return
        self._seen.add(key)
        if message["finished"]:
            self._ended.add(key.request)
        self.puts.append(key)
        self.store[key] = message


class Run:
    """The messages of one use of a request id, in order."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.taken = 0
        self.given_up = False

    @property
    def complete(self) -> bool:
        return bool(self.messages) and bool(self.messages[-1]["finished"])


class RunsWire:
    """Keeps the runs of each request, one after the other, as `stagewire.ChunkTransport` says; thread-safe.

    ``on_put`` may raise, before or, when it returns an exception, after the message was stored.
    """

    def __init__(self) -> None:
        self.runs: dict[str, list[Run]] = {}
        self.on_put: Callable[[ChunkKey, Message], Exception | None] = lambda _key, _message: None
        self.on_get: Callable[[ChunkKey], object] = lambda _key: None
        self._lock = threading.Lock()

    def put(self, key: str, message: Message) -> None:
        assert isinstance(key, ChunkKey)
        late = self.on_put(key, message)
        with self._lock:
            self._store(key, message)
        if late is not None:
            raise late

    def get(self, key: str) -> Message | None:
        assert isinstance(key, ChunkKey)
        self.on_get(key)
        with self._lock:
            return self._next(key.request, key.chunk)

    def cleanup(self, request: str) -> None:
        with self._lock:
            for run in self.runs.get(request, ()):
                run.given_up = True

    def _store(self, key: ChunkKey, message: Message) -> None:
        runs = self.runs.setdefault(key.request, [])
        run = runs[-1] if runs else None
        if run is None or run.complete:
            if run is not None and (key.chunk or message is run.messages[0]):
                return  # a repeat
            run = Run()
            runs.append(run)
        if key.chunk < len(run.messages):
            return  # a repeat
        assert key.chunk == len(run.messages), f"{key!r} leaves a gap"
        run.messages.append(message)

    def _next(self, request: str, chunk: int) -> Message | None:
        """Take a chunk of the oldest run that was not wholly taken."""
        for run in self.runs.get(request, ()):
            if run.given_up or (run.complete and run.taken == len(run.messages)):
                continue
            if chunk != run.taken or chunk >= len(run.messages):
                return None
            run.taken += 1
            return run.messages[chunk]
        return None


class ManyRunsWire(RunsWire):
    """The same, putting several together and handing out runs. After a failure the rest of that request is not put."""

    def put_many(self, items: Sequence[tuple[ChunkKey, Message]]) -> list[Exception | None]:
        failed: dict[str, Exception] = {}
        results: list[Exception | None] = []
        for key, message in items:
            error = failed.get(key.request) or self._try(key, message)
            if error is not None:
                failed[key.request] = error
            results.append(error)
        return results

    def get_many(self, key: ChunkKey, limit: int) -> list[Message]:
        message = self.get(key)
        found: list[Message] = []
        while message is not None:
            found.append(message)
            if message["finished"] or len(found) == limit:
                break
            with self._lock:
                message = self._next(key.request, key.chunk + len(found))
        return found

    def _try(self, key: ChunkKey, message: Message) -> Exception | None:
        try:
            self.put(key, message)
        except Exception as error:
            return error
        return None


class Gate:
    """Holds whoever calls it until it is opened, and tells that somebody came."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self._open = threading.Event()

    def __call__(self, *_ignored: object) -> None:
        self.entered.set()
        assert self._open.wait(PATIENCE), "nobody opened the gate"

    def wait_for_visitor(self) -> None:
        assert self.entered.wait(PATIENCE), "nobody came to the gate"

    def open(self) -> None:
        self._open.set()


class ManualClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Pair:
    """A sender and a receiver without threads: the test decides who takes a step, and what time it is."""

    def __init__(self, wire: Any, **options: Any) -> None:
        build = options.pop("build", None)
        hooks = ("log", "on_ready", "on_room", "on_sent", "edge")
        extra: dict[str, Any] = {name: options.pop(name) for name in hooks if name in options}
        self.wire = wire
        self.clock = ManualClock()
        self.received: dict[str, list[Message]] = {}
        common: dict[str, Any] = {"options": ChunkOptions(**options), "clock": self.clock, "threads": False, **extra}
        self.snd = ChunkAdapter(wire, 0, None, build, **common)
        self.rcv = ChunkAdapter(wire, 1, 0, **common)

    def save(self, request: str, *payloads: Any, final: bool = False) -> None:
        """Save payloads, the last one as a final if asked to."""
        for number, payload in enumerate(payloads, 1):
            self.snd.save_async(request, payload, final and number == len(payloads))

    def send(self, rounds: int = 1_000) -> None:
        """Let the SAVE side work until there is nothing to do now."""
        while rounds and not self.snd.step_save():
            rounds -= 1

    def receive(self, rounds: int = 1_000) -> None:
        """Let the RECV side work until there is nothing to do now."""
        while rounds and not self.rcv.step_receive():
            rounds -= 1

    def poll(self) -> dict[str, list[Message]]:
        """Poll, and note what came."""
        news: dict[str, list[Message]] = {}
        for request, messages in self.rcv.poll_ready().items():
            news[request] = list(messages)
            self.received.setdefault(request, []).extend(messages)
        return news

    def settle(self, seconds: float = 10.0) -> None:
        """Let both work, with time going by, and poll."""
        for _ in range(int(seconds / 0.05)):
            self.send()
            self.receive()
            self.clock.advance(0.05)
        self.poll()

    def data(self, request: str) -> list[Any]:
        """What was received for a request, without the envelopes."""
        return [message["data"] for message in self.received.get(request, ())]

    def assert_quiescent(self) -> None:
        self.snd.assert_quiescent()
        self.rcv.assert_quiescent()


class Builder:
    """A payload builder that changes nothing and remembers what it was given."""

    def __init__(self) -> None:
        self.built: list[Any] = []

    def __call__(self, payload: Any) -> Any:
        self.built.append(payload)
        return payload


class Recorder:
    """A logger that keeps its events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, level: str) -> Callable[..., None]:
        if level.startswith("_"):
            raise AttributeError(level)
        return lambda event, **fields: self.events.append((event, {"level": level, **fields}))

    def named(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for another thread to make the condition true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.0005)


class Collector:
    """Polls a receiver until the messages that a test waits for have come."""

    def __init__(self, receiver: ChunkAdapter) -> None:
        self._receiver = receiver
        self.received: dict[str, list[Message]] = {}

    def poll(self) -> None:
        for request, messages in self._receiver.poll_ready().items():
            self.received.setdefault(request, []).extend(messages)

    def until(self, request: str, count: int) -> list[Message]:
        """Poll until that many messages of the request have come; returns them."""

        def come() -> bool:
            self.poll()
            return len(self.received.get(request, ())) >= count

        wait_until(come)
        return self.received[request]

    def until_final(self, request: str) -> list[Message]:
        """Poll until the request's terminal has come; returns all its messages."""

        def come() -> bool:
            self.poll()
            messages = self.received.get(request)
            return bool(messages and messages[-1]["finished"])

        wait_until(come)
        return self.received[request]


@pytest.fixture
def conn() -> Conn:
    return Conn()


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def make_wire() -> Callable[[], Wire]:
    return Wire


@pytest.fixture
def keeping_wire() -> KeepingWire:
    return KeepingWire()


@pytest.fixture
def runs_wire(make_runs_wire: Callable[[], RunsWire]) -> RunsWire:
    return make_runs_wire()


@pytest.fixture(params=[RunsWire, ManyRunsWire])
def make_runs_wire(request: pytest.FixtureRequest) -> Callable[[], RunsWire]:
    """Make a wire that keeps runs; the tests that use it run over each kind."""
    make: Callable[[], RunsWire] = request.param
    return make


@pytest.fixture
def builder() -> Builder:
    return Builder()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def make_gate() -> Iterator[Callable[[], Gate]]:
    """Make gates; those still closed at the end are opened, so that no thread stays behind."""
    gates: list[Gate] = []

    def make() -> Gate:
        gates.append(Gate())
        return gates[-1]

    yield make
    for gate in gates:
        gate.open()


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], None]:
    return wait_until


@pytest.fixture
def make_clock() -> Callable[[], ManualClock]:
    return ManualClock


@pytest.fixture
def make_pair() -> Callable[..., Pair]:
    """Make a sender and a receiver without threads; keyword arguments are `ChunkOptions` and hooks."""
    return Pair


@pytest.fixture
def pair(wire: Wire) -> Pair:
    return Pair(wire)


@pytest.fixture
def make_adapter(make_gate: Callable[[], Gate]) -> Iterator[Callable[..., ChunkAdapter]]:
    """Make adapters with threads, stopped at the end of the test."""
    del make_gate  # only for the order: adapters are stopped before the gates that hold them are opened
    adapters: list[ChunkAdapter] = []

    def make(*args: Any, **kwargs: Any) -> ChunkAdapter:
        adapters.append(ChunkAdapter(*args, **kwargs))
        return adapters[-1]

    yield make
    for adapter in adapters:
        with suppress(Exception):
            adapter.stop(timeout=0.0)


@pytest.fixture
def collect() -> Callable[[ChunkAdapter], Collector]:
    return Collector
