"""A state machine: save, cancel, fail, load, clean up, poll, step and stop in any order, against a model.

The transport keeps runs, so every use of a request id is one run on the wire and the model can say what it must be.
Which use a save belongs to depends on what the adapter has heard of by then, so that one thing is looked up in the
adapter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from stagewire import ChunkKey, Permanent, Retryable, TransportFull
from stagewire_chunks import ChunkAdapter, ChunkOptions

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import ManualClock, Message, Run, RunsWire

REQUESTS = ["a", "a_1", "b"]
requests = st.sampled_from(REQUESTS)


class Use:
    """One use of a request id, as the callers see it."""

    def __init__(self, token: object) -> None:
        self.token = token
        self.payloads: list[int] = []
        self.final = False
        self.cancelled = False

    def check(self, run: Run) -> None:
        """Check what was put of a use that has ended."""
        *chunks, terminal = run.messages
        data = [message["data"] for message in chunks]
        assert data == self.payloads[: len(data)], "ids are contiguous and chunks in order"
        assert [message["finished"] for message in run.messages] == [False] * len(data) + [True]
        if "error" in terminal:
            assert terminal["data"] is None
        elif "cancelled" in terminal:
            assert self.cancelled  # the caller's final may have come when this one was on its way
        else:
            assert self.final
            whole = [*data, terminal["data"]] == self.payloads
            assert whole or (self.cancelled and terminal["data"] is None), "nothing is lost"


class Faults:
    """What becomes of the next puts and gets of each request. An ERROR terminal always gets through."""

    def __init__(self) -> None:
        self.puts: dict[str, list[str]] = {}
        self.gets: dict[str, int] = {}

    def on_put(self, key: ChunkKey, message: Message) -> Exception | None:
        kinds = self.puts.get(key.request)
        if not kinds or "error" in message:
            return None
        kind = kinds.pop()
        if kind == "arrived":
            return TimeoutError("no confirm, but it arrived")
        raise {"full": TransportFull("full"), "lost": ConnectionError("down"), "hopeless": Permanent("no")}[kind]

    def on_get(self, key: ChunkKey) -> None:
        if self.gets.get(key.request):
            self.gets[key.request] -= 1
            raise Retryable("later")


class Chunks(RuleBasedStateMachine):
    make_wire: Callable[[], RunsWire]
    make_clock: Callable[[], ManualClock]

    def __init__(self) -> None:
        super().__init__()
        self.wire, self.clock, self.faults = type(self).make_wire(), type(self).make_clock(), Faults()
        self.wire.on_put, self.wire.on_get = self.faults.on_put, self.faults.on_get
        options = ChunkOptions(attempts=3, room_timeout=2.0, window_chunks=4)
        self.adapter = ChunkAdapter(self.wire, 0, 0, options=options, clock=self.clock, threads=False)
        self.uses: dict[str, list[Use]] = {request: [] for request in REQUESTS}
        self.logs: dict[str, list[list[Message]]] = {request: [] for request in REQUESTS}
        self.ended: list[tuple[str, list[Message]]] = []
        self.numbers = itertools.count()
        self.ending = "settle"

    @initialize(ending=st.sampled_from(["settle", "settle", "drain", "stop"]))
    def choose_ending(self, ending: str) -> None:
        self.ending = ending

    def current(self, request: str) -> Any:
        lane = self.adapter._outbox.backlog.lanes.get(request)
        return lane.use if lane else None

    @rule(request=requests, final=st.booleans(), length=st.integers(1, 3))
    def save(self, request: str, length: int, *, final: bool) -> None:
        for position in range(length):
            self.save_one(request, final=final and position == length - 1)

    def save_one(self, request: str, *, final: bool) -> None:
        payload = next(self.numbers)
        self.adapter.save_async(request, payload, final)
        token, uses = self.current(request), self.uses[request]
        if token is None:
            return  # the rest of a use that failed
        if not uses or uses[-1].token is not token:
            uses.append(Use(token))
        uses[-1].payloads.append(payload)
        uses[-1].final = final

    @rule(request=requests)
    def cancel(self, request: str) -> None:
        token = self.current(request)
        self.adapter.cancel_sender(request)
        if token is not None:
            assert self.uses[request][-1].token is token
            self.uses[request][-1].cancelled = True

    @rule(request=requests, kinds=st.lists(st.sampled_from(["full", "lost", "arrived", "hopeless"]), max_size=4))
    def break_puts(self, request: str, kinds: list[str]) -> None:
        self.faults.puts[request] = kinds

    @rule(request=requests, times=st.integers(0, 3))
    def break_gets(self, request: str, times: int) -> None:
        self.faults.gets[request] = times

    @rule()
    def poll_failed(self) -> None:
        self.adapter.poll_failed()

    @rule(request=requests)
    def load(self, request: str) -> None:
        if request not in self.adapter._inbox._registered:
            self.logs[request].append([])
        self.adapter.load_async(request)

    @rule(request=requests)
    def clean_up(self, request: str) -> None:
        self.adapter.cleanup_receiver(request)
        self.ended += [(request, log) for log in self.logs[request]]
        self.logs[request].clear()

    @rule(leave=st.sets(requests, max_size=1))
    def poll(self, leave: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        for request, messages in self.adapter.poll_ready(leave=leave).items():
            assert messages
            assert request not in leave
            for message in messages:
                log = self.logs[request][0]
                log.append(message)
                if message["finished"]:
                    self.ended.append((request, self.logs[request].pop(0)))

    @rule(rounds=st.integers(1, 4))
    def step_save(self, rounds: int) -> None:
        for _ in range(rounds):
            self.adapter.step_save()

    @rule(rounds=st.integers(1, 4))
    def step_receive(self, rounds: int) -> None:
        for _ in range(rounds):
            self.adapter.step_receive()

    @rule(seconds=st.sampled_from([0.004, 0.06, 0.3, 3.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def settle(self) -> None:
        for _ in range(40):
            while not self.adapter.step_save():
                pass
            while not self.adapter.step_receive():
                pass
            self.poll()
            self.clock.advance(0.3)

    def teardown(self) -> None:
        self.faults.puts.clear()
        self.faults.gets.clear()
        if self.ending == "settle":
            self.end_everything()
        else:
            self.stop_short()
        self.check_received()

    def end_everything(self) -> None:
        """End every use, receive every run; then nothing may be left, and every use be what it was to be."""
        for request in REQUESTS:
            if self.current(request) is not None:
                self.save_one(request, final=True)
        self.settle()
        for request in REQUESTS:
            for _ in self.wire.runs.get(request, ()):
                self.load(request)
                self.settle()
            self.clean_up(request)
            runs = self.wire.runs.get(request, [])
            for use, run in zip(self.uses[request], runs, strict=True):
                use.check(run)
                assert run.given_up or run.taken == len(run.messages)
        self.adapter.assert_quiescent()

    def stop_short(self) -> None:
        report = self.adapter.stop(drain=self.ending == "drain")
        self.poll()
        for request in REQUESTS:
            runs = self.wire.runs.get(request, [])
            for use, run in itertools.zip_longest(self.uses[request], runs):
                if run and run.complete:
                    use.check(run)
                elif request not in report.unsent:
                    assert not use.final
                    assert not use.cancelled
            self.adapter.cleanup_receiver(request)

    def check_received(self) -> None:
        """What a registration received is the beginning of one run, and all of it once its terminal was received."""
        for request, log in self.ended:
            if not log:
                continue
            run = next(run for run in self.wire.runs[request] if run.messages[0] is log[0])
            assert all(got is put for got, put in zip(log, run.messages, strict=False))
            assert not log[-1]["finished"] or len(log) == len(run.messages)


def test_ch18_ch20_any_order_of_operations_against_the_model(
    make_runs_wire: Callable[[], RunsWire], make_clock: Callable[[], ManualClock]
) -> None:
    machine = type(
        "Machine", (Chunks,), {"make_wire": staticmethod(make_runs_wire), "make_clock": staticmethod(make_clock)}
    )
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=120, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
