"""Every interleaving of a short story, and an intervention inside every call of foreign code."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import ChunkKey

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Message, Pair, RunsWire, Wire

MakePair = Callable[..., "Pair"]
Act = Callable[["Pair"], object]

ACTS: dict[str, Act] = {
    "load": lambda pair: pair.rcv.load_async("r"),
    "p0": lambda pair: pair.save("r", "p0"),
    "p1": lambda pair: pair.save("r", "p1"),
    "end": lambda pair: pair.save("r", "end", final=True),
    "cancel": lambda pair: pair.snd.cancel_sender("r"),
    "SAVE": lambda pair: pair.snd.step_save(),
    "RECV": lambda pair: pair.rcv.step_receive(),
}


def interleavings(*threads: list[str]) -> Iterator[list[str]]:
    """All orders in which threads can take their steps."""
    total = sum(map(len, threads))
    first, *rest = threads
    if not rest:
        yield first
        return
    for others in interleavings(*rest):
        for places in itertools.combinations(range(total), len(first)):
            mine, theirs = iter(first), iter(others)
            yield [next(mine) if place in places else next(theirs) for place in range(total)]


def check_story(pair: Pair, *, cancelled: bool) -> None:
    messages = pair.received["r"]
    finished = [message["finished"] for message in messages]
    assert finished == [False] * (len(messages) - 1) + [True], "one terminal, and it is the last"
    data = [message["data"] for message in messages[:-1]]
    assert data == ["p0", "p1"][: len(data)]
    if not cancelled:
        assert (len(data), messages[-1]["data"]) == (2, "end")
    pair.assert_quiescent()


@pytest.mark.parametrize("story", ["load p0 p1 end", "p0 load p1 cancel end", "p0 p1 end cancel load"])
def test_ch6_ch8_ch18_every_interleaving_of_caller_save_and_recv(
    story: str, make_pair: MakePair, make_wire: Callable[[], Wire]
) -> None:
    for order in interleavings(["SAVE"] * 3, ["RECV"] * 2, story.split()):
        wire = make_wire()
        pair = make_pair(wire)
        for name in order:
            ACTS[name](pair)
        pair.settle(0.5)
        check_story(pair, cancelled="cancel" in story)
        assert wire.puts == [f"r_0_{number}" for number in range(len(wire.puts))]


class Interruption:
    """Runs an action inside the n-th call of foreign code: a build, a put or a get."""

    def __init__(self, action: Act, at: int) -> None:
        self.calls = 0
        self._action, self._at = action, at
        self.pair: Pair | None = None

    def __call__(self, value: Any, *_more: Any) -> Any:
        self.calls += 1
        if self.calls == self._at and self.pair is not None:
            self._action(self.pair)
        return value


def tell_story(interruption: Interruption, make_pair: MakePair, wire: RunsWire) -> Pair:
    """Three chunks, then an end, with an interruption somewhere; everything is received in the end."""
    pair = interruption.pair = make_pair(wire, build=interruption)

    def on_put(key: ChunkKey, message: Message) -> None:
        interruption(key, message)

    wire.on_put, wire.on_get = on_put, interruption
    pair.rcv.load_async("r")
    pair.save("r", "p0", "p1")
    pair.send()
    pair.receive()
    pair.poll()
    pair.save("r", "p2", "end", final=True)
    pair.settle(0.5)
    return pair


def clean_and_load(pair: Pair) -> None:
    pair.rcv.cleanup_receiver("r")
    pair.received.pop("r", None)
    pair.rcv.load_async("r")


def begin_anew(pair: Pair) -> None:
    pair.snd.cancel_sender("r")
    pair.save("r", "new", "new end", final=True)


INTERVENTIONS: dict[str, Act] = {
    "cancel": ACTS["cancel"],
    "clean-and-load": clean_and_load,
    "begin-anew": begin_anew,
    "poll": lambda pair: pair.poll(),
}


@pytest.mark.parametrize("name", INTERVENTIONS)
def test_ch6_ch10_ch14_ch18_an_intervention_inside_every_foreign_call(
    name: str, make_pair: MakePair, make_runs_wire: Callable[[], RunsWire]
) -> None:
    undisturbed = Interruption(INTERVENTIONS["poll"], 0)
    tell_story(undisturbed, make_pair, make_runs_wire())
    assert undisturbed.calls > 10
    for at in range(1, undisturbed.calls + 1):
        wire = make_runs_wire()
        pair = tell_story(Interruption(INTERVENTIONS[name], at), make_pair, wire)
        for _ in wire.runs["r"]:
            pair.rcv.load_async("r")
            pair.settle(0.5)
        pair.rcv.cleanup_receiver("r")
        for run in wire.runs["r"]:
            finals = [message["finished"] for message in run.messages]
            assert finals == [False] * (len(finals) - 1) + [True], f"{name} in call {at}"
        if name != "clean-and-load":  # which gives up what was on its way
            assert pair.received["r"] == [message for run in wire.runs["r"] for message in run.messages]
        pair.assert_quiescent()
