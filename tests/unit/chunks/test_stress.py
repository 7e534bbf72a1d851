"""Real threads, many requests, an unreliable transport, and interventions at any time; bounded in time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from stagewire import ChunkKey, TransportFull
from stagewire_chunks import ChunkAdapter, ChunkOptions

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Message, RunsWire

Make = Callable[..., ChunkAdapter]
Eventually = Callable[[Callable[[], object]], None]

PRODUCERS = 4
REQUESTS = 60
CHUNKS = 12


class Weather:
    """Makes puts fail now and then, and gets too; thread-safe enough: a random choice is one call."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def on_put(self, _key: ChunkKey, message: Message) -> Exception | None:
        dice = self._random.random()
        if dice < 0.02:
            raise TransportFull("full")
        if dice < 0.04:
            raise ConnectionError("down")
        return TimeoutError("arrived all the same") if dice < 0.06 and "error" not in message else None

    def on_get(self, _key: ChunkKey) -> None:
        if self._random.random() < 0.01:
            raise ConnectionError("down")


def produce(snd: ChunkAdapter, rcv: ChunkAdapter, producer: int) -> None:
    """Save the chunks of some requests in turn, cancel some of them, and use every id twice."""
    dice = random.Random(producer)
    for use in range(2):
        for number in range(REQUESTS):
            request = f"p{producer}_{number}"
            for chunk in range(CHUNKS):
                save(snd, request, (use, chunk), final=chunk == CHUNKS - 1)
            if dice.random() < 0.2:
                snd.cancel_sender(request)
            if use == 0 or dice.random() < 0.5:
                rcv.load_async(request)


def save(snd: ChunkAdapter, request: str, payload: object, *, final: bool) -> None:
    while True:
        try:
            return snd.save_async(request, payload, final)
        except TransportFull:
            assert snd.wait_for_room(request, 20.0)


def test_ch15_ch18_ch20_many_threads_over_an_unreliable_transport(
    runs_wire: RunsWire, make_adapter: Make, eventually: Eventually
) -> None:
    weather = Weather(7)
    runs_wire.on_put, runs_wire.on_get = weather.on_put, weather.on_get
    options = ChunkOptions(queue_chunks=500, backoff=0.001, backoff_max=0.01)
    snd, rcv = make_adapter(runs_wire, 0, options=options), make_adapter(runs_wire, 1, 0, options=options)
    received: dict[str, list[Message]] = {}

    def poll() -> None:
        for request, messages in rcv.poll_ready().items():
            received.setdefault(request, []).extend(messages)

    producers = [threading.Thread(target=produce, args=(snd, rcv, number)) for number in range(PRODUCERS)]
    for thread in producers:
        thread.start()
    while any(thread.is_alive() for thread in producers):
        poll()
    snd.assert_quiescent(timeout=20.0)

    def all_received() -> bool:
        poll()
        for request in runs_wire.runs:
            rcv.load_async(request)
        # What the receiver has got of the transport is not yet what it has handed out.
        return all(
            len(received.get(request, [])) == sum(len(run.messages) for run in runs)
            for request, runs in runs_wire.runs.items()
        )

    eventually(all_received)
    for request, runs in runs_wire.runs.items():
        rcv.cleanup_receiver(request)
        assert received[request] == [message for run in runs for message in run.messages]
        for use, run in enumerate(runs):
            check_run(use, run.messages)
    assert len(runs_wire.runs) == PRODUCERS * REQUESTS
    snd.assert_quiescent()
    rcv.assert_quiescent()
    assert not snd.poll_failed()


def check_run(use: int, messages: list[Message]) -> None:
    *chunks, terminal = messages
    data = [message["data"] for message in chunks]
    assert data == [(use, chunk) for chunk in range(len(data))]
    assert not any(message["finished"] for message in chunks)
    assert terminal["finished"]
    assert terminal["data"] is None or (terminal["data"] == (use, CHUNKS - 1) and len(data) == CHUNKS - 1)
