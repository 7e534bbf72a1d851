"""The promises of `ChunkTransport`, TR-1 to TR-12 as far as they concern chunks, and CH-7."""

from __future__ import annotations

import asyncio
import functools
import time
from typing import Any

from stagewire.errors import Closed, TransportFull
from stagewire.spec.transport import TRANSPORT_STATS, ChunkMessage, ChunkTransport
from stagewire.testing.suites.base import refused
from stagewire.testing.suites.transport import Ends, TransportHarness, chunk, key, over_transports


class ChunkTransportSuite(TransportHarness):
    """Tests of the blocking face. Subclass it as ``Test…`` and override `transports`."""

    @over_transports
    async def test_tr1_what_was_put_arrives_unchanged(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        messages: list[ChunkMessage] = [
            {"data": {"text": "zwölf", "n": [1, 2.5, None, True]}, "finished": False},
            {"data": None, "finished": True, "error": "the stage failed"},
        ]
        for number, message in enumerate(messages):
            await self.call(send.put, key("r", number), message)
        got = [await self.receive(receive, key("r", number)) for number in range(2)]
        assert [dict(message) for message in got] == messages, "a message must arrive as it was put"

    @over_transports
    async def test_tr1_threads_put_at_once_and_nothing_is_lost(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        chunks = min(5, self.limits.request_chunks)
        requests = [f"r{number}" for number in range(12)]
        async with asyncio.TaskGroup() as group:
            for request in requests:
                group.create_task(self.call(_put_run, send, request, chunks))
        for request in requests:
            assert await self.receive_run(receive, request, chunks) == list(range(chunks)), request

    @over_transports
    async def test_tr2_a_chunk_is_handed_out_once(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        await self.call(send.put, key("r", 0), chunk("once"))
        await self.receive(receive, key("r", 0))
        await self.stays_empty(receive, key("r", 0))

    @over_transports
    async def test_tr3_chunks_are_taken_in_any_order(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        await self.call(_put_run, send, "r", 4)
        got = [(await self.receive(receive, key("r", number)))["data"] for number in (2, 0, 3, 1)]
        assert got == [2, 0, 3, 1], "each key must give its own chunk"

    @over_transports
    async def test_tr3_requests_with_similar_names_never_mix(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        requests = ["a", "a_1", "a_1_0", "1", "a/1", "ä 1"]
        for request in requests:
            await self.call(send.put, key(request, 0), chunk(request))
        for request in reversed(requests):
            assert (await self.receive(receive, key(request, 0)))["data"] == request

    @over_transports
    async def test_tr3_a_repeated_put_is_dropped_before_and_after_it_was_taken(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        message = chunk("first")
        await self.call(send.put, key("r", 0), message)
        await self.call(send.put, key("r", 0), message)
        await self.receive(receive, key("r", 0))
        await self.call(send.put, key("r", 0), message)
        await self.call(send.put, key("r", 1), chunk("second"))
        assert (await self.receive(receive, key("r", 1)))["data"] == "second"
        await self.stays_empty(receive, key("r", 0))

    @over_transports
    async def test_tr3_a_repeated_final_does_not_begin_a_new_run(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        only, last = chunk("only", finished=True), chunk("last", finished=True)
        await self.call(send.put, key("short", 0), only)
        await self.call(send.put, key("long", 0), chunk("first"))
        await self.call(send.put, key("long", 1), last)
        await self.receive(receive, key("short", 0))
        await self.receive_run(receive, "long", 2)
        await self.call(send.put, key("short", 0), only)
        await self.call(send.put, key("long", 1), last)
        await self.stays_empty(receive, key("short", 0))
        await self.stays_empty(receive, key("long", 1))

    @over_transports
    async def test_ch7_a_finished_request_id_is_used_again_at_once(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        for run in range(3):
            await self.call(send.put, key("r", 0), chunk(f"{run} begins"))
            await self.call(send.put, key("r", 1), chunk(f"{run} ends", finished=True))
            assert await self.receive_run(receive, "r", 2) == [f"{run} begins", f"{run} ends"]
            await self.call(receive.cleanup, "r")

    @over_transports
    async def test_ch7_runs_of_one_id_are_read_one_after_the_other(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        for run in range(2):
            await self.call(send.put, key("r", 0), chunk(f"{run} begins"))
            await self.call(send.put, key("r", 1), chunk(f"{run} ends", finished=True))
        for run in range(2):
            assert await self.receive_run(receive, "r", 2) == [f"{run} begins", f"{run} ends"]

    @over_transports
    async def test_tr4_requests_that_nobody_reads_do_not_stall_the_next(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        await self.call(_put_silent, send, self.limits.silent_requests)
        await self.call(_put_run, send, "next", 2)
        assert await self.receive_run(receive, "next", 2) == [0, 1]

    @over_transports
    async def test_tr4_a_full_request_touches_no_other(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        await self.call(_fill, send, "full", self.limits.request_chunks)
        await self.call(_put_run, send, "other", 2)
        assert await self.receive_run(receive, "other", 2) == [0, 1]

    @over_transports
    async def test_tr5_a_request_that_nobody_reads_is_bounded(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        taken = await self.call(_fill, send, "r", self.limits.request_chunks)
        for number in range(taken):
            assert (await self.receive(receive, key("r", number)))["data"] == number

        fits = functools.partial(self.call, _fits, send, "r", taken)
        await self.eventually_awaited(fits, "there is room after the reader has caught up")
        assert (await self.receive(receive, key("r", taken)))["data"] == taken, "a refused put leaves no trace"

    @over_transports
    async def test_tr6_chunks_that_nobody_asks_for_expire(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        await self.call(_put_run, send, "abandoned", 2)
        await self.advance(self.limits.expires * 1.5)
        await self.stays_empty(receive, key("abandoned", 0))
        await self.call(_put_run, send, "alive", 2)
        assert await self.receive_run(receive, "alive", 2) == [0, 1]

    @over_transports
    async def test_tr6_what_comes_after_a_cleanup_is_dropped_until_the_next_run(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        await self.call(_put_run, send, "r", 3)
        await self.receive(receive, key("r", 0))
        await self.call(receive.cleanup, "r")
        await self.call(send.put, key("r", 3), chunk("late"))
        await self.call(send.put, key("r", 4), chunk("late end", finished=True))
        for number in (1, 3, 4):
            await self.stays_empty(receive, key("r", number))
        await self.call(send.put, key("r", 0), chunk("new run"))
        assert (await self.receive(receive, key("r", 0)))["data"] == "new run"

    @over_transports
    async def test_tr6_a_cleanup_before_anything_came_loses_nothing(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        await self.call(receive.cleanup, "r")
        await self.call(_put_run, send, "r", 2)
        assert await self.receive_run(receive, "r", 2) == [0, 1]

    @over_transports
    async def test_tr6_a_cleanup_by_the_sender_loses_nothing_that_was_put(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        await self.call(send.put, key("r", 0), chunk("whole", finished=True))
        await self.call(send.cleanup, "r")
        assert (await self.receive(receive, key("r", 0)))["data"] == "whole"

    @over_transports
    async def test_tr8_get_never_waits(self, ends: Ends) -> None:
        _, receive = self.faces(ends)
        started = time.perf_counter()
        assert all(receive.get(key("absent", number)) is None for number in range(200))
        assert time.perf_counter() - started < 200 * 0.005, "a get of what is not there takes milliseconds"

    @over_transports
    async def test_tr9_chunks_put_together_have_one_result_each(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        put_many = getattr(send, "put_many", None)
        if put_many is None:
            return  # it is optional; single puts are tested above
        taken = await self.call(_fill, send, "full", self.limits.request_chunks)
        items = [(key("a", 0), chunk("a")), (key("full", taken), chunk("too many")), (key("b", 0), chunk("b"))]
        results = await self.call(put_many, items)
        assert [type(result) for result in results] == [type(None), TransportFull, type(None)]
        assert [(await self.receive(receive, key(request, 0)))["data"] for request in "ab"] == ["a", "b"]

    @over_transports
    async def test_tr9_chunks_taken_together_come_in_order(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        get_many = getattr(receive, "get_many", None)
        if get_many is None:
            return  # it is optional; single gets are tested above
        await self.call(_put_run, send, "r", 3)
        await self.call(send.put, key("r", 3), chunk("end", finished=True))
        assert list(get_many(key("absent", 0), 5)) == []
        got: list[Any] = []
        while len(got) < 4:
            more = functools.partial(get_many, key("r", len(got)), 2)
            got += await self.eventually(more, "more of the run arrives")
        assert [message["data"] for message in got] == [0, 1, 2, "end"]

    @over_transports
    async def test_tr10_small_and_large_payloads_arrive_alike(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        large = bytes(range(256)) * (self.limits.large // 256)
        payloads = [b"", b"small", large, {"parts": [large[:-1], "text"]}]
        for number, payload in enumerate(payloads):
            await self.call(send.put, key(f"r{number}", 0), chunk(payload))
        for number, payload in enumerate(payloads):
            got = (await self.receive(receive, key(f"r{number}", 0)))["data"]
            assert got == payload, f"payload {number} differs"
            assert type(got) is type(payload), f"payload {number} is a {type(got)}"

    @over_transports
    async def test_tr11_a_closed_face_says_so(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        for face in (send, receive):
            await self.call(face.close)
            await self.call(face.close)
        await refused(Closed, self.call(send.put, key("r", 0), chunk(1)), "a put after close")
        await refused(Closed, self.call(receive.get, key("r", 0)), "a get after close")

    @over_transports
    async def test_tr11_what_was_put_before_the_sender_closed_arrives(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        await self.call(_put_run, send, "r", 3)
        await self.call(send.close)
        assert await self.receive_run(receive, "r", 3) == [0, 1, 2]

    @over_transports
    async def test_tr12_an_edge_is_counted(self, ends: Ends) -> None:
        edge = self.unique("edge")
        send, receive = self.faces(ends, edge)
        await self.call(_put_run, send, "r", 3)
        await self.receive_run(receive, "r", 3)
        sent, received = ends.sender.stats()[edge], ends.receiver.stats()[edge]
        for counters in (sent, received):
            assert set(TRANSPORT_STATS) <= set(counters), "every counter of TRANSPORT_STATS must be there"
        assert sent["puts"] == received["gets"] == 3, "three chunks were put and taken"
        assert sent["bytes"] > 0, "bytes are counted"
        assert received["wait_seconds"] >= 0, "the time from put to get is counted"


def _put_run(face: ChunkTransport, request: str, count: int) -> None:
    for number in range(count):
        face.put(key(request, number), chunk(number))


def _put_silent(face: ChunkTransport, count: int) -> None:
    for number in range(count):
        face.put(key(f"silent{number}", 0), chunk("unread"))


def _fits(face: ChunkTransport, request: str, number: int) -> bool:
    try:
        face.put(key(request, number), chunk(number))
    except TransportFull:
        return False
    return True


def _fill(face: ChunkTransport, request: str, limit: int) -> int:
    """Put chunks until one is refused; return how many were taken, which must be at most ``limit``."""
    for number in range(limit + 1):
        if not _fits(face, request, number):
            assert number, "a request that holds nothing must be allowed a chunk"
            return number
    raise AssertionError(f"more than {limit} chunks were taken although nobody reads them")
