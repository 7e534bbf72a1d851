"""The blocking face: roles, wake-ups, closing."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ByteSize

from stagewire import ChunkKey, ChunkLink, ChunkMessage, Closed, Permanent, TransportFull
from stagewire_local import LocalOptions, LocalTransport
from stagewire_local.chunks import LocalChunks

KEY = ChunkKey("r", 0, 0)
MESSAGE: ChunkMessage = {"data": 1, "finished": False}


def face(transport: LocalTransport, role: str = "both") -> LocalChunks:
    made = transport.chunks(ChunkLink("edge", 0, 1, role=role))  # type: ignore[arg-type]
    assert isinstance(made, LocalChunks)
    return made


def test_a_link_keeps_to_its_role() -> None:
    transport = LocalTransport()
    with pytest.raises(Permanent, match="cannot get from edge 'edge': the link's role is 'send'"):
        face(transport, "send").get(KEY)
    with pytest.raises(Permanent, match="cannot put to edge 'edge': the link's role is 'receive'"):
        face(transport, "receive").put(KEY, MESSAGE)


def test_ch11_each_reader_of_a_link_is_woken_after_the_put() -> None:
    transport = LocalTransport()
    calls: list[str] = []
    readers = [face(transport, "receive") for _ in range(2)]
    readers[0].set_wakeup(lambda *_: calls.append(f"first {readers[0].get(KEY) is not None}"))
    readers[1].set_wakeup(lambda *_: calls.append("second"))
    face(transport, "send").put(KEY, MESSAGE)
    assert calls == ["first True", "second"]
    readers[1].close()
    face(transport, "send").put_many([(ChunkKey("r", 0, number), MESSAGE) for number in (1, 2)])
    assert calls == ["first True", "second", "first False"]


def test_ch11_a_refused_put_wakes_nobody() -> None:
    transport = LocalTransport(LocalOptions(request_chunks=1))
    reader, writer = face(transport), face(transport)
    writer.put(KEY, MESSAGE)
    reader.set_wakeup(lambda *_: pytest.fail("there is nothing new"))
    refused = ChunkKey("r", 0, 1)
    with pytest.raises(TransportFull):
        writer.put(refused, MESSAGE)
    assert [type(result) for result in writer.put_many([(refused, MESSAGE)])] == [TransportFull]


def test_ch11_a_wakeup_that_raises_harms_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    transport = LocalTransport()
    woken: list[bool] = []
    broken, reader = face(transport), face(transport)
    broken.set_wakeup(lambda *_: 1 / 0)  # type: ignore[arg-type]
    reader.set_wakeup(lambda *_: woken.append(True))
    reader.put(KEY, MESSAGE)
    assert woken == [True]
    assert reader.get(KEY) is MESSAGE
    assert "transport.wakeup_failed" in capsys.readouterr().err


def test_tr11_a_closed_reader_leaves_what_it_did_not_read_to_its_successor() -> None:
    transport = LocalTransport()
    first = face(transport, "receive")
    face(transport, "send").put(KEY, MESSAGE)
    first.close()
    with pytest.raises(Closed):
        first.cleanup("r")
    assert face(transport, "receive").get(KEY) is MESSAGE


def test_tr11_closing_the_transport_reports_what_was_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        await transport.open()
        for number in range(3):
            writer.put(ChunkKey("r", 0, number), MESSAGE)
        await transport.close()
        await transport.close()

    transport = LocalTransport()
    writer = face(transport)
    asyncio.run(main())
    lines = [line for line in capsys.readouterr().err.splitlines() if "transport.unread" in line]
    assert len(lines) == 1
    assert transport.stats()["edge"]["unread"] == 3
    with pytest.raises(Closed):
        writer.put(KEY, MESSAGE)
    with pytest.raises(Closed):
        writer.get(KEY)
    with pytest.raises(Closed):
        writer.cleanup("r")
    with pytest.raises(Closed):
        transport.chunks(ChunkLink("edge", 0, 1))
    with pytest.raises(Closed):
        asyncio.run(transport.open())


def test_get_many_is_what_several_gets_are() -> None:
    transport = LocalTransport()
    both = face(transport)
    for number in range(3):
        both.put(ChunkKey("r", 0, number), {"data": number, "finished": number == 2})
    assert both.get_many(ChunkKey("absent", 0, 0), 4) == []
    assert [message["data"] for message in both.get_many(KEY, 2)] == [0, 1]
    assert both.get_many(KEY, 4) == []
    assert [message["data"] for message in both.get_many(ChunkKey("r", 0, 2), 4)] == [2]
    assert transport.stats()["edge"]["gets"] == 3
    sender = face(transport, "send")
    with pytest.raises(Permanent):
        sender.get_many(KEY, 1)


def test_tr9_what_comes_after_a_refused_chunk_of_its_request_is_refused_with_it() -> None:
    transport = LocalTransport(LocalOptions(request_bytes=ByteSize(100)))
    link = face(transport)
    chunks = [("r", 0, 10), ("r", 1, 200), ("other", 0, 10), ("r", 2, 10)]
    results = link.put_many(
        [(ChunkKey(request, 0, number), {"data": bytes(size), "finished": False}) for request, number, size in chunks]
    )
    assert [type(result) for result in results] == [type(None), TransportFull, type(None), TransportFull]
    assert results[3] is results[1]
    assert link.get(ChunkKey("r", 0, 2)) is None
    assert link.put_many([(ChunkKey("r", 0, 1), MESSAGE)]) == [None], "what was refused left no trace"


def test_ch11_a_wake_up_names_the_requests_that_something_was_put_for() -> None:
    transport = LocalTransport()
    named: list[set[str]] = []
    link = face(transport)
    link.set_wakeup(lambda *requests: named.append(set(requests)))
    link.put(KEY, MESSAGE)
    link.put_many([(ChunkKey(request, 0, 1), MESSAGE) for request in ("r", "s", "r")])
    assert named == [{"r"}, {"r", "s"}]
