"""What travels between orchestrators and workers: records, numbers, outputs; and what is kept for a successor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from stagewire import ChunkKey, ChunkLink, ConfigError, Delivery, Message, Permanent, RequestFailed, Retryable, StageId
from stagewire.app import App
from stagewire.testing import StubContext, run_virtual
from stagewire_local import LocalOptions, LocalTransport
from stagewire_orchestrator.edges import Edge
from stagewire_orchestrator.graph import Graph
from stagewire_orchestrator.kept import KEPT_BYTES, KeptEnd
from stagewire_orchestrator.links import again, wire_of
from stagewire_orchestrator.options import EdgeLimits
from stagewire_orchestrator.outputs import Mark, StageOutput
from stagewire_orchestrator.payloads import collected
from stagewire_orchestrator.remote.outputs import pack_output, unpack_output
from stagewire_orchestrator.remote.post import Numbers, Post
from stagewire_orchestrator.remote.protocol import Bye, Hello, pack, unpack


class Box:
    """A batch transport of one mailbox, which fails as the test says."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.poison: str | None = None
        self.records: list[Any] = []

    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        records = [unpack(message) for message in messages]
        if any(getattr(record, "orchestrator", None) == self.poison for record in records):
            raise Permanent("it is too large")
        self.records += records
        if self.failures:
            raise self.failures.pop()

    def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AbstractAsyncContextManager[Sequence[Delivery]]:
        raise AssertionError

    async def request(self, mailbox: str, message: Message, *, timeout: float) -> Message:
        raise AssertionError

    async def purge(self, mailbox: str) -> int:
        raise AssertionError


@asynccontextmanager
async def posting(box: Box) -> AsyncIterator[Post]:
    post = Post(box, "box")
    task = asyncio.create_task(post.run())
    try:
        yield post
    finally:
        task.cancel()
        await asyncio.wait([task])
        post.close()


def names(records: Sequence[Any]) -> list[str]:
    return [record.orchestrator for record in records]


def test_tr3_what_was_not_confirmed_is_put_again_and_read_once() -> None:
    async def main() -> None:
        box = Box()
        box.failures = [Retryable("not confirmed"), Retryable("not confirmed")]
        async with posting(box) as post:
            sent = [post.put(Bye(orchestrator=name)) for name in "abc"]
            assert await post.flush(10)
            assert all(each.done() for each in sent)
        assert len(box.records) == 9
        numbers = Numbers()
        assert names([record for record in box.records if numbers.fresh(record)]) == ["a", "b", "c"]

    run_virtual(main())


def test_tr9_what_cannot_be_put_fails_alone() -> None:
    async def main() -> None:
        box = Box()
        box.poison = "b"
        async with posting(box) as post:
            a, b, c = (post.put(Bye(orchestrator=name)) for name in "abc")
            await post.flush(10)
            assert isinstance(b.exception(), Permanent)
            assert a.exception() is c.exception() is None
        assert names(box.records) == ["a", "c"]

    run_virtual(main())


def test_tr11_a_closed_post_gives_up_what_waits() -> None:
    async def main() -> None:
        box = Box()
        box.failures = [Retryable("away")] * 1_000
        async with posting(box) as post:
            waiting = post.put(Bye(orchestrator="a"))
            assert not await post.flush(1)
        assert waiting.cancelled()
        assert post.put(Bye(orchestrator="b")).exception() is not None

    run_virtual(main())


@pytest.mark.parametrize(
    "payload",
    [None, {}, {"v": 0, "kind": "bye"}, {"v": 1, "kind": "what"}, {"v": 1, "kind": "bye", "colour": "red"}],
)
def test_tr6_what_is_no_record_is_refused_by_name(payload: Any) -> None:
    with pytest.raises(Permanent):
        unpack(Message(payload))


def test_tr3_a_record_comes_back_as_it_was() -> None:
    hello = Hello(sender="s", number=3, orchestrator="o", started=7)
    assert unpack(pack(hello)) == hello


@pytest.mark.parametrize(
    ("error", "stage", "cause"),
    [
        (ValueError("no"), "here", "process: ValueError: no"),
        (RequestFailed("a", "there", "its input: gone"), "there", "its input: gone"),
    ],
)
def test_or10_an_error_travels_as_its_stage_and_cause(error: Exception, stage: str, cause: str) -> None:
    output = unpack_output(
        pack_output(StageOutput("w", finished=True, has_data=False, error=error, mark=Mark(1, 2, 3))), "a", "here"
    )
    assert isinstance(output.error, RequestFailed)
    assert (output.error.request_id, output.error.stage, output.error.cause) == ("a", stage, cause)
    assert (output.finished, output.has_data, output.mark) == (True, False, Mark(1, 2, 3))


def test_or13_inputs_become_what_they_are_in_one_process() -> None:
    stages = ["a", "b", "any", "zip", "one"]
    edges = [Edge(source, target) for source in "ab" for target in ("any", "zip")] + [Edge("any", "one")]
    graph = Graph(stages, edges, ["zip", "one"], joins={"any": "any", "zip": "zip"})
    inputs: dict[StageId, Any] = {"a": [1, 2], "b": [3, 4]}
    assert collected(graph.nodes["a"], {}) is None
    assert collected(graph.nodes["zip"], inputs) == [(1, 3), (2, 4)]
    assert collected(graph.nodes["any"], inputs) == inputs
    assert collected(graph.nodes["one"], {"any": [5]}) == [5]


def test_or15_an_id_on_an_edge_leads_back_to_the_request() -> None:
    assert wire_of(again("r~1", 2)) == wire_of("r~1") == "r~1"


def real(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


@asynccontextmanager
async def kept_end(**limits: Any) -> AsyncIterator[tuple[KeptEnd, LocalTransport]]:
    transport = LocalTransport(LocalOptions(), clock=asyncio.get_running_loop().time)
    await transport.open()
    end = KeptEnd(
        Edge("a", "b", "chunk"),
        0,
        transport,
        limits=EdgeLimits(**limits),
        on_failed=lambda _wire, _error: None,
        log=StubContext().log,
        confirms=True,
    )
    try:
        yield end, transport
    finally:
        await end.close()
        await transport.close()


def test_or15_what_was_retired_is_not_kept_and_cannot_be_asked_for() -> None:
    async def main() -> None:
        async with kept_end() as (end, _transport):
            for number in range(10):
                await end.send("r", number)
            end.retire("r", 4)
            end.check("r", 4, begun=True)
            with pytest.raises(RequestFailed, match="chunk 3 for 'b' is not kept"):
                end.check("r", 3, begun=True)
            with pytest.raises(RequestFailed):
                end.check("unknown", 0, begun=False)
            end.finish("r")
            await end.sent("r")
            assert end.stats()["kept"] == 6
            end.retire("r", 2**53)
            assert end.stats()["kept_requests"] == 0

    real(main())


def test_or16_keeping_is_bounded_and_holds_nobody_back() -> None:
    async def main() -> None:
        async with kept_end() as (end, _transport):
            block = bytes(KEPT_BYTES // 4)
            for _ in range(4):
                await end.send("r", block)
            with pytest.raises(RequestFailed, match="16 MiB"):
                end.check("r", 0, begun=True)
            end.check("r", 2, begun=True)

    real(main())


def test_or15_a_request_is_sent_again_from_any_chunk_under_another_id() -> None:
    async def main() -> None:
        async with kept_end() as (end, transport):
            for number in range(5):
                await end.send("r", number)
            await end.resend("r", again("r", 1), 3)
            await end.send("r", 5)
            end.finish("r")
            await end.sent("r")
            face: Any = transport.chunks(ChunkLink("a->b", "a", "b", 0, "receive"))
            got = [face.get(ChunkKey(again("r", 1), "a", number)) for number in range(4)]
            assert [message["data"] for message in got] == [[3], [4], [5], None]
            assert got[-1]["finished"]

    real(main())


def test_or15_stages_elsewhere_need_a_transport_that_reaches_them(tmp_path: Any) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "version: 1\npipeline: orchestrator\nworkers: local\n"
        "stages:\n  a: {use: text.sentences, workers: external}\noutputs: {a: {file: x.txt}}\n"
    )
    with pytest.raises(ConfigError, match="reached over the transport 'local'") as caught:
        App().load([file])
    first, second = str(caught.value).splitlines()
    assert "p.yaml:3:10: workers: " in first
    assert "p.yaml:5:37: stages.a.workers: " in second
    assert "rabbitmq" in first
