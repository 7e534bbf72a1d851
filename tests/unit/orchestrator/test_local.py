"""Stages in this process, many requests at once: ids used again, aborts that leave nothing on the edges, windows."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest

from stagewire import BuildContext, ChunkLink, LoggingOptions, StageRequest, make_logger, stage_provider
from stagewire.testing import StubContext, no_leaks
from stagewire_local import LocalTransport
from stagewire_orchestrator import Orchestrator, Terminal
from stagewire_orchestrator.assembly import build, numbered
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.windows import Window

QUIET = make_logger(LoggingOptions(level="error"), pipeline="test")


class Bench:
    """An orchestrator from options, over the local transport, with stages of the test's own."""

    def __init__(
        self,
        stages: dict[str, Any],
        edges: list[str],
        outputs: list[str],
        joins: dict[str, str] | None = None,
        transport: LocalTransport | None = None,
        **sections: Any,
    ) -> None:
        blocks = {name: {"use": name, "final": name in outputs} for name in stages}
        for name, join in (joins or {}).items():
            blocks[name]["join"] = join
        text = {
            "stages": blocks,
            "edges": [{"from": edge[0], "to": edge[-1], "kind": "chunk" if "~" in edge else "batch"} for edge in edges],
            **sections,
        }
        options = OrchestratorOptions.model_validate(text)
        for name, made_of in stages.items():
            provider = stage_provider(name, made_of)
            options.stages[name].resolve(provider, provider.options())
        self.transport = transport or LocalTransport()
        context = StubContext(base=Path(), log=QUIET, backends={"transport": self.transport})
        self.orchestrator: Orchestrator = build(options, cast("BuildContext", context))

    async def collect(self, request: str) -> list[Any]:
        """Return the request's chunks; other requests' are dropped."""
        chunks = []
        while True:
            output = await self.orchestrator.next_output(10)
            if output.request_id == request:
                if output.has_data:
                    chunks.append(output.data)
                if output.finished:
                    assert output.terminal is Terminal.END, output
                    return chunks

    def left(self) -> dict[str, float]:
        """Return what there is of any request in a table, on an edge, or in the transport."""
        left = {f"tables {name}": count for name, count in self.orchestrator.stats()["tables"].items()}
        for replica in self.orchestrator._replicas:
            client: Any = replica.client
            for part, counts in client.stats().items():
                busy = {"running", "receiving", "unread", "lanes", "waiting"} & counts.keys()
                left |= {f"{replica} {part} {each}": counts[each] for each in busy}
        for edge, counts in self.transport.stats().items():
            left[f"{edge} unread"] = counts.get("unread", 0)
        return {name: count for name, count in left.items() if count and name != "tables outputs"}


def run(bench: Bench, story: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await bench.transport.open()
        async with asyncio.timeout(30), bench.orchestrator:
            await story(bench)
        await bench.transport.close()

    with no_leaks():
        asyncio.run(main())


async def same(request: StageRequest) -> AsyncIterator[Any]:
    async for chunk in request.chunks:
        yield chunk


async def endless(request: StageRequest) -> AsyncIterator[str]:
    for number in itertools.count():
        yield f"{request.prompt}{number}"


async def three(request: StageRequest) -> AsyncIterator[str]:
    for number in range(3):
        yield f"{request.prompt}{number}"


def by_prompt(request: StageRequest) -> AsyncIterator[str]:
    return endless(request) if request.prompt == "old" else three(request)


class ByPrompt:
    async def process(self, request: StageRequest) -> AsyncIterator[str]:
        async for chunk in by_prompt(request):
            yield chunk


def test_or12_an_acknowledged_abort_leaves_nothing_and_a_later_use_sees_nothing_of_it(eventually: Any) -> None:
    async def story(bench: Bench) -> None:
        for _ in range(5):
            await bench.orchestrator.add_request("r", "old")
            assert (await bench.orchestrator.next_output(10)).data == "old0"
            assert await bench.orchestrator.abort("r")
            assert not bench.left()
            await asyncio.sleep(0.05)
            assert not bench.left()  # nothing comes behind, either
            assert (await bench.orchestrator.next_output(10)).cancelled
            await bench.orchestrator.add_request("r", "new")
            assert await bench.collect("r") == ["new0", "new1", "new2"]
        await eventually(lambda: not bench.left())  # what nobody took of an edge is still dropped behind the end

    run(Bench({"a": ByPrompt, "b": same, "c": same}, ["a~b", "b~c"], ["c"]), story)


class SlowPuts(LocalTransport):
    """Takes its time for every put, as a broker does."""

    def chunks(self, link: ChunkLink) -> Any:
        face: Any = super().chunks(link)
        put_many = face.put_many

        def slow(items: Any) -> Any:
            time.sleep(0.02)
            return put_many(items)

        face.put_many = slow
        return face


def test_or12_an_acknowledged_abort_leaves_nothing_in_a_slow_transport_either() -> None:
    async def silent(_request: StageRequest) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield "never"

    async def story(bench: Bench) -> None:
        for number in range(5):
            await bench.orchestrator.add_request(f"r{number}", None)
            await asyncio.sleep(0)
            assert await bench.orchestrator.abort(f"r{number}")
            await asyncio.sleep(0.05)
            assert not bench.left()

    run(Bench({"a": silent, "b": same}, ["a~b"], ["b"], transport=SlowPuts()), story)


def test_or12_every_use_of_an_id_has_a_name_of_its_own_on_the_edges() -> None:
    assert numbered("r", 1) != numbered("r", 2)

    async def story(bench: Bench) -> None:
        seen: list[str] = []
        for _ in range(2):
            await bench.orchestrator.add_request("r", "old")
            await bench.orchestrator.next_output(10)
            seen += bench.orchestrator.request_states
            await bench.orchestrator.abort("r")
            await bench.orchestrator.next_output(10)
        assert seen == ["r#1", "r#2"]

    run(Bench({"a": ByPrompt, "b": same}, ["a~b"], ["b"]), story)


def test_or12_a_stage_that_swallows_its_cancel_reaches_no_later_use(eventually: Any) -> None:
    gate = asyncio.Event()

    class Stubborn:
        async def process(self, request: StageRequest) -> AsyncIterator[str]:
            yield f"{request.prompt}0"
            if request.prompt == "old":
                while not gate.is_set():
                    try:
                        await gate.wait()
                    except asyncio.CancelledError:
                        continue
            yield f"{request.prompt}1"

    async def story(bench: Bench) -> None:
        await bench.orchestrator.add_request("r", "old")
        assert (await bench.orchestrator.next_output(10)).data == "old0"
        assert await bench.orchestrator.abort("r")  # after release_timeout
        await bench.orchestrator.add_request("r", "new")
        gate.set()
        assert (await bench.orchestrator.next_output(10)).cancelled
        assert await bench.collect("r") == ["new0", "new1"]
        await eventually(lambda: not bench.left())  # what nobody took of an edge is still dropped behind the end
        assert bench.orchestrator.dropped_outputs == 0

    run(Bench({"a": Stubborn, "b": same}, ["a~b"], ["b"], limits={"release_timeout": 0.2}), story)


@pytest.mark.parametrize("edge", ["a~b", "ab"])
def test_or12_many_requests_at_once_keep_apart(edge: str, eventually: Any) -> None:
    async def story(bench: Bench) -> None:
        ids = [f"r{number}" for number in range(50)]
        for request in ids:
            await bench.orchestrator.add_request(request, f"{request}:")
        got: dict[str, list[Any]] = {request: [] for request in ids}
        while ids:
            output = await bench.orchestrator.next_output(10)
            if output.has_data:
                got[output.request_id].append(output.data)
            if output.finished:
                ids.remove(output.request_id)
        assert got == {request: [f"{request}:{number}" for number in range(3)] for request in got}
        await eventually(lambda: not bench.left())  # what nobody took of an edge is still dropped behind the end

    run(Bench({"a": three, "b": same}, [edge], ["b"]), story)


def test_or14_a_stage_that_ends_early_behind_a_full_edge_frees_its_upstream(eventually: Any) -> None:
    async def one(request: StageRequest) -> AsyncIterator[Any]:
        chunk = await anext(request.chunks)
        await asyncio.sleep(0.2)  # until everything before it is full
        yield chunk

    async def many(_request: StageRequest) -> AsyncIterator[int]:
        for number in range(3_000):
            yield number

    async def story(bench: Bench) -> None:
        await bench.orchestrator.add_request("r", None)
        assert len(await bench.collect("r")) == 3_001
        await eventually(lambda: not bench.left())  # what nobody took of an edge is still dropped behind the end

    run(Bench({"a": many, "b": one}, ["a~b"], ["a", "b"]), story)


def test_or13_the_branches_that_any_does_not_take_are_not_held_back(eventually: Any) -> None:
    async def many(_request: StageRequest) -> AsyncIterator[int]:
        for number in range(3_000):
            yield number

    async def story(bench: Bench) -> None:
        await bench.orchestrator.add_request("r", None)
        assert await bench.collect("r") == list(range(3_000))
        await eventually(lambda: not bench.left())  # what nobody took of an edge is still dropped behind the end

    stages = {"a": many, "b": same, "c": same, "d": same}
    run(Bench(stages, ["a~b", "a~c", "b~d", "c~d"], ["d"], joins={"d": "any"}), story)


def test_or16_a_window_counts_outputs_and_bytes() -> None:
    async def main() -> None:
        window = Window(3, 100)
        await window.acquire(b"x" * 200)  # passes alone, however large
        waiting = asyncio.create_task(window.acquire(b"y"))
        await asyncio.sleep(0)
        assert not waiting.done()
        window.release(1)
        await waiting
        await window.acquire(b"")
        await window.acquire(b"")
        assert window.full
        window.release(5)
        assert not window.full

    asyncio.run(main())


def test_or16_a_client_that_does_not_read_holds_its_own_request_back_only(eventually: Any) -> None:
    async def story(bench: Bench) -> None:
        await bench.orchestrator.add_request("slow", "old")
        outbox = bench.orchestrator._outbox
        await eventually(lambda: len(outbox) == 4)
        await bench.orchestrator.add_request("quick", "new")
        await eventually(lambda: len(outbox) == 4 + 3 + 1)  # three chunks and the end
        await bench.orchestrator.abort("slow")

    run(Bench({"a": ByPrompt, "b": same}, ["a~b"], ["b"], limits={"queued_outputs": 4}), story)


class Fragile:
    """Puts out ten chunks; fails at one of them when the prompt says so."""

    async def process(self, request: StageRequest) -> AsyncIterator[str]:
        for number in range(10):
            await asyncio.sleep(0)
            if (request.prompt, number) == ("fail", int(request.id) % 10):
                raise ValueError("boom")
            yield f"{request.id}:{number}"


@pytest.mark.parametrize("edges", [["a~b", "b~c"], ["a~b", "bc"]], ids=["chunk", "mixed"])
def test_or19_requests_that_end_fail_and_are_aborted_leave_nothing_on_the_edges(
    eventually: Any, edges: list[str]
) -> None:
    plans = random.Random(19).choices(["end", "fail", "abort"], k=300)

    async def story(bench: Bench) -> None:
        orchestrator = bench.orchestrator
        aborting: set[asyncio.Task[bool]] = set()

        async def feed() -> None:
            for number, plan in enumerate(plans):
                await orchestrator.add_request(str(number), plan)
                if plan == "abort":
                    aborting.add(asyncio.create_task(orchestrator.abort(str(number))))
                    await asyncio.sleep(0)

        feeding = asyncio.create_task(feed())
        chunks: dict[str, list[Any]] = {}
        ends: dict[str, Terminal | None] = {}
        while len(ends) < len(plans):
            output = await orchestrator.next_output(10)
            assert output.request_id not in ends
            if output.has_data:
                chunks.setdefault(output.request_id, []).append(output.data)
            if output.finished:
                ends[output.request_id] = output.terminal
        await feeding
        assert all(await asyncio.gather(*aborting))
        names = {"end": Terminal.END, "fail": Terminal.ERROR, "abort": Terminal.CANCEL}
        assert ends == {str(number): names[plan] for number, plan in enumerate(plans)}
        for request, got in chunks.items():
            whole = [f"{request}:{number}" for number in range(10)]
            assert got == whole if ends[request] is Terminal.END else got == whole[: len(got)]
        await eventually(lambda: not bench.left())

    stages = {"a": Fragile, "b": same, "c": same}
    run(Bench(stages, edges, ["c"], limits={"requests": 20}), story)
