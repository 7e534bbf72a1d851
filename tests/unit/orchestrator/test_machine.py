"""A model of the orchestrator against the real one: add, output, finish, fail, abort, reader death, late output,
shutdown, in any order."""

from __future__ import annotations

import asyncio
import io
from collections import defaultdict
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stagewire import Closed, LoggingOptions, make_logger
from stagewire.testing import VirtualLoop
from stagewire_orchestrator import Orchestrator, OrchOutput, RequestRefused, Terminal
from stagewire_orchestrator.testing import FullClient, ScriptedClient

T = TypeVar("T")

IDS = st.sampled_from(["a", "b", "c", "a_1"])
STAGES = st.sampled_from([0, 1, 2])
QUIET = make_logger(LoggingOptions(level="error", format="json"), pipeline="machine", stream=io.StringIO())

Row = tuple[Any, Any, Terminal | None]
"""What the client sees of one output: the stage, the data, how it ended."""


@dataclass
class Model:
    """What one admitted request is expected to do."""

    finals: frozenset[int]
    dead: set[int]
    submitted: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    rows: list[Row] = field(default_factory=list)
    terminal: Terminal | None = None

    def __post_init__(self) -> None:
        needed = range(max(self.finals) + 1)
        if any(stage in self.dead for stage in needed):
            self.end(next(stage for stage in needed if stage in self.dead), Terminal.ERROR)
        else:
            self.submit(0)

    def submit(self, stage: int) -> None:
        if stage in self.dead:
            self.end(stage, Terminal.ERROR)
        else:
            self.submitted.add(stage)

    def at(self, stage: int) -> bool:
        return self.terminal is None and stage in self.submitted and stage not in self.ended

    def output(self, stage: int, data: Any) -> None:
        if stage in self.finals:
            self.rows.append((stage, data, None))

    def finish(self, stage: int, data: Any) -> None:
        self.ended.add(stage)
        if self.finals <= self.ended:
            self.terminal = Terminal.END
            self.rows.append((stage, data, Terminal.END))
            return
        self.output(stage, data)
        if stage < 2:
            self.submit(stage + 1)

    def end(self, stage: int | None, how: Terminal, *, keep: bool = False) -> None:
        self.terminal = how
        if how is Terminal.CANCEL and not keep:
            self.rows.clear()  # what was not taken is dropped
        self.rows.append((stage, None, how))


class Machine(RuleBasedStateMachine):
    """Steps one by one, each until everything has come to rest."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.models: dict[str, Model] = {}
        self.expected: defaultdict[str, list[Row]] = defaultdict(list)
        self.dead: set[int] = set()
        self.dropped = 0
        self.number = 0
        self.closed = False

    def do(self, step: Coroutine[Any, Any, T]) -> T:
        async def settled() -> T:
            result = await step
            await asyncio.sleep(0.01)
            return result

        return self.runner.run(settled())

    @initialize(
        finals=st.sets(STAGES, min_size=1), client=st.sampled_from([ScriptedClient, FullClient]), wires=st.booleans()
    )
    def begin(self, finals: set[int], client: type[ScriptedClient], wires: bool) -> None:
        self.finals = frozenset(finals)
        self.stages = [client() for _ in range(3)]
        self.wires = wires
        self.admitted = 0
        self.current: dict[str, str] = {}
        wire_id = (lambda request, number: f"{request}#{number}") if wires else None
        self.orchestrator = Orchestrator(
            self.stages, lambda _stage, _prompt, collected: collected, self.finals, wire_id=wire_id, log=QUIET
        )
        self.do(self.orchestrator.start())

    def live(self, request: str) -> Model | None:
        model = self.models.get(request)
        return model if model is not None and model.terminal is None else None

    def wire(self, request: str) -> str:
        return self.current.get(request, f"{request}#0") if self.wires else request

    def collect(self) -> None:
        """Take over what the models expect the client to see."""
        for request, model in self.models.items():
            self.expected[request] += model.rows
            model.rows.clear()

    @rule(request=IDS)
    def add(self, request: str) -> None:
        if self.closed:
            with pytest.raises(Closed):
                self.do(self.orchestrator.add_request(request, "prompt"))
            return
        if self.live(request) is not None:
            with pytest.raises(RequestRefused):
                self.do(self.orchestrator.add_request(request, "prompt"))
            return
        self.collect()
        self.admitted += 1
        self.current[request] = f"{request}#{self.admitted}"
        self.do(self.orchestrator.add_request(request, "prompt"))
        self.models[request] = Model(self.finals, self.dead)

    def at_work(self) -> list[tuple[str, int]]:
        return [
            (request, stage) for request, model in sorted(self.models.items()) for stage in range(3) if model.at(stage)
        ]

    @precondition(lambda self: self.at_work())
    @rule(data=st.data(), finished=st.booleans())
    def speak(self, data: st.DataObject, finished: bool) -> None:
        """A stage puts out something for a request that it has."""
        self.put(*data.draw(st.sampled_from(self.at_work())), finished)

    @rule(request=st.sampled_from(["a", "b", "nobody"]), stage=STAGES, finished=st.booleans())
    def speak_out_of_turn(self, request: str, stage: int, finished: bool) -> None:
        if stage not in self.dead and not self.closed:
            self.put(request, stage, finished)

    def put(self, request: str, stage: int, finished: bool) -> None:
        self.number += 1
        self.stages[stage].put(self.wire(request), self.number, finished)
        self.do(asyncio.sleep(0))
        model = self.models.get(request)
        if model is None or not model.at(stage):
            self.dropped += 1
        elif finished:
            model.finish(stage, self.number)
        else:
            model.output(stage, self.number)

    @precondition(lambda self: self.at_work())
    @rule(data=st.data(), mine=st.booleans(), request=IDS, stage=STAGES)
    def fail(self, data: st.DataObject, mine: bool, request: str, stage: int) -> None:
        if mine:
            request, stage = data.draw(st.sampled_from(self.at_work()))
        if stage in self.dead:
            return
        self.stages[stage].put(self.wire(request), error=ValueError("boom"))
        self.do(asyncio.sleep(0))
        model = self.models.get(request)
        if model is None or not model.at(stage):
            self.dropped += 1
        else:
            model.end(stage, Terminal.ERROR)

    @rule(request=IDS)
    def abort(self, request: str) -> None:
        model = self.live(request)
        self.take_all()  # so that the model need not know what is dropped
        assert self.do(self.orchestrator.abort(request)) is (model is not None)
        if model is not None:
            model.end(None, Terminal.CANCEL)

    @precondition(lambda self: self.number > 8 * (1 + len(self.dead)) and not self.closed)
    @rule(stage=STAGES)
    def die(self, stage: int) -> None:
        if stage in self.dead:
            return
        self.stages[stage].die(OSError("gone"))
        self.do(asyncio.sleep(0))
        self.dead.add(stage)
        for model in self.models.values():
            if model.at(stage):
                model.end(stage, Terminal.ERROR)

    @rule()
    def take_all(self) -> None:
        self.collect()
        seen = self.do(self.drain())
        for request, rows in self.expected.items():
            assert seen.pop(request, []) == rows
        assert not seen
        self.expected.clear()

    @precondition(lambda self: self.number > 20)
    @rule()
    def shut_down(self) -> None:
        self.do(self.orchestrator.shutdown())
        self.closed = True
        for model in self.models.values():
            if model.terminal is None:
                model.end(None, Terminal.CANCEL, keep=True)

    async def drain(self) -> dict[str, list[Row]]:
        seen: defaultdict[str, list[Row]] = defaultdict(list)
        while True:
            try:
                output: OrchOutput = await self.orchestrator.next_output(0)
            except (TimeoutError, Closed):
                return seen
            assert output.finished == (output.terminal is not None)
            seen[output.request_id].append((output.stage_id, output.data, output.terminal))

    @invariant()
    def tables_are_what_is_in_flight(self) -> None:
        if not hasattr(self, "orchestrator"):
            return
        alive = {request for request, model in self.models.items() if model.terminal is None}
        tables = self.orchestrator.stats()["tables"]
        assert {state.id for state in self.orchestrator.request_states.values()} == alive
        assert (tables["ledger"], tables["ids"]) == (len(alive), len(alive))
        assert (tables["releases"], tables["ready"], tables["inbox"], tables["submitting"]) == (0, 0, 0, 0)
        at_work = sum(model.at(stage) for model in self.models.values() for stage in range(3))
        assert tables["load"] == at_work
        assert self.orchestrator.dropped_outputs == self.dropped

    @invariant()
    def ledger_follows_the_model(self) -> None:
        if not hasattr(self, "orchestrator"):
            return
        for state in self.orchestrator.request_states.values():
            model = self.models[state.id]
            assert (state.submitted, state.finished) == (model.submitted, model.ended)

    def teardown(self) -> None:
        if hasattr(self, "orchestrator"):
            self.shut_down()
            self.take_all()
            assert not any(self.orchestrator.stats()["tables"].values())
        self.runner.close()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
