"""Bounds, fairness, expiry and memory of the chunk store."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from stagewire import ChunkKey, ChunkLink, ChunkMessage, Permanent, TransportFull

MakeBench = Callable[..., Any]


def key(request: str, chunk: int, stage: int = 0) -> ChunkKey:
    return ChunkKey(request, stage, chunk)


def message(data: Any = None, *, finished: bool = False) -> ChunkMessage:
    return {"data": data, "finished": finished}


def test_values_travel_by_reference(make_bench: MakeBench) -> None:
    data: dict[str, Any] = {"a": []}
    bench = make_bench()
    bench.chunks.put(key("r", 0), message(data))
    got = bench.chunks.get(key("r", 0))
    assert got is not None
    assert got["data"] is data


def test_ch3_stages_that_share_a_link_never_mix(make_bench: MakeBench) -> None:
    bench = make_bench()
    for stage in (0, 1, "0"):
        bench.chunks.put(ChunkKey("r", stage, 0), message(stage))
    for stage in ("0", 1, 0):
        got = bench.chunks.get(ChunkKey("r", stage, 0))
        assert got is not None
        assert got["data"] == stage
    bench.chunks.put(key("s", 0, 0), message())
    bench.chunks.put(key("s", 0, 1), message())
    bench.chunks.cleanup("s")
    assert bench.stats["unread"] == 0


def test_tr5_a_request_is_bounded_by_count(make_bench: MakeBench) -> None:
    bench = make_bench(request_chunks=3)
    for number in range(3):
        bench.chunks.put(key("r", number), message())
    with pytest.raises(TransportFull, match=r"'r' has 3 unread chunks .* 'edge', and request_chunks is 3"):
        bench.chunks.put(key("r", 3), message())
    bench.chunks.put(key("other", 0), message())
    bench.chunks.get(key("r", 0))
    bench.chunks.put(key("r", 3), message())
    assert bench.stats["full"] == 1


def test_tr5_a_request_is_bounded_by_bytes(make_bench: MakeBench) -> None:
    bench = make_bench(request_bytes=1000, total_bytes=10_000)
    bench.chunks.put(key("r", 0), message(bytes(900)))
    with pytest.raises(TransportFull):
        bench.chunks.put(key("r", 1), message(bytes(200)))
    bench.chunks.get(key("r", 0))
    bench.chunks.put(key("r", 1), message(bytes(5000)))  # alone, a chunk may be larger than the bound
    with pytest.raises(Permanent, match="total_bytes"):
        bench.chunks.put(key("s", 0), message(bytes(10_001)))


def test_tr3_a_gap_is_bounded(make_bench: MakeBench) -> None:
    bench = make_bench(request_chunks=4)
    bench.chunks.put(key("r", 0), message())
    bench.chunks.put(key("r", 4), message())
    with pytest.raises(TransportFull):
        bench.chunks.put(key("r", 5), message())
    for _ in range(3):  # what is taken early does not let the gap grow
        bench.chunks.get(key("r", 4))
        with pytest.raises(TransportFull):
            bench.chunks.put(key("r", 5), message())


def test_tr4_many_silent_requests_leave_room_for_the_next(make_bench: MakeBench) -> None:
    """However many requests fill what they may, the next one can put, take and put."""
    bench = make_bench(total_bytes=100_000, request_bytes=50_000, request_chunks=1000)
    held = []
    for number in range(200):
        items = [(key(f"silent{number}", chunk), message(bytes(1000))) for chunk in range(60)]
        assert isinstance(bench.chunks.put_many(items)[-1], TransportFull)
        held.append(bench.stats["unread_bytes"])
    assert held[0] == pytest.approx(50_000, abs=1100)
    assert held[1] < 80_000, "the second may hold no more than what the first left free"
    for chunk in range(50):
        bench.chunks.put(key("next", chunk), message(bytes(1000)))
        assert bench.chunks.get(key("next", chunk)) is not None
    assert held[-1] <= 100_000 + 200 * 1016


@pytest.mark.parametrize("end", ["get", "cleanup", "expire"])
def test_tr5_the_budget_is_given_back(make_bench: MakeBench, end: str) -> None:
    bench = make_bench(total_bytes=13_000, request_bytes=9_000, expires=8)
    for number in range(20):
        bench.chunks.put(key(f"r{number}", 0), message(bytes(4_000)))
        if end == "get":
            bench.chunks.get(key(f"r{number}", 0))
        elif end == "cleanup":
            bench.chunks.cleanup(f"r{number}")
        else:
            bench.clock.advance(9)
    bench.chunks.get(key("somebody else", 0))
    for number in range(2):
        bench.chunks.put(key("next", number), message(bytes(4_000)))


def test_a_request_that_began_again_is_not_forgotten_with_its_past(make_bench: MakeBench) -> None:
    bench = make_bench(remembered=2)

    def run(name: str) -> None:
        bench.chunks.put(key(name, 0), message(finished=True))
        bench.chunks.get(key(name, 0))

    run("again")
    bench.chunks.put(key("again", 0), message("kept"))
    for number in range(5):
        run(f"r{number}")
    assert bench.stats["unread"] == 1
    got = bench.chunks.get(key("again", 0))
    assert got is not None
    assert got["data"] == "kept"


def test_tr5_the_number_of_requests_is_bounded(make_bench: MakeBench) -> None:
    bench = make_bench(requests=10)
    for number in range(10):
        bench.chunks.put(key(f"r{number}", 0), message())
    with pytest.raises(TransportFull, match="10 requests have unread chunks"):
        bench.chunks.put(key("eleventh", 0), message())
    bench.chunks.get(key("r3", 0))
    bench.chunks.put(key("eleventh", 0), message())


def test_a_run_that_was_forgotten_while_it_paused_goes_on(make_bench: MakeBench) -> None:
    bench = make_bench(requests=4, request_chunks=2)
    for number in range(6):
        bench.chunks.put(key("paused", number), message(number))
        bench.chunks.get(key("paused", number))
    for number in range(20):
        bench.clock.advance(0.1)
        bench.chunks.put(key(f"r{number}", 0), message())
        bench.chunks.get(key(f"r{number}", 0))
    bench.chunks.put(key("paused", 6), message("on"))
    got = bench.chunks.get(key("paused", 6))
    assert got is not None
    assert got["data"] == "on"


def test_tr6_what_nobody_asked_for_expires_and_its_sender_is_told(make_bench: MakeBench) -> None:
    bench = make_bench(expires=10)
    bench.chunks.put(key("r", 0), message())
    bench.clock.advance(10)
    with pytest.raises(Permanent, match=r"'r' expired on edge 'edge': nobody asked .* 10 s"):
        bench.chunks.put(key("r", 1), message())
    with pytest.raises(Permanent):
        bench.chunks.put(key("r", 2), message(finished=True))
    assert bench.chunks.get(key("r", 0)) is None
    bench.chunks.put(key("r", 0), message("next run"))
    assert bench.chunks.get(key("r", 0)) is not None
    assert (bench.stats["expired"], bench.stats["unread"]) == (1, 0)


def test_tr6_a_reader_that_asks_keeps_its_request_alive(make_bench: MakeBench) -> None:
    bench = make_bench(expires=10)
    bench.chunks.put(key("r", 1), message("early"))
    for _ in range(5):
        bench.clock.advance(9)
        assert bench.chunks.get(key("r", 0)) is None
    assert bench.chunks.get(key("r", 1)) is not None


def test_tr6_any_activity_frees_what_has_expired(make_bench: MakeBench) -> None:
    bench = make_bench(expires=8)
    for number in range(100):
        bench.chunks.put(key(f"r{number}", 0), message(bytes(1000)))
    bench.clock.advance(9)
    bench.chunks.get(key("somebody else", 0))
    assert (bench.stats["unread"], bench.stats["expired"]) == (0, 100)


def test_tr6_an_expiry_is_reported(make_bench: MakeBench, capsys: pytest.CaptureFixture[str]) -> None:
    bench = make_bench(expires=10)
    bench.chunks.put(key("r", 0), message(b"x" * 84))
    bench.clock.advance(10)
    bench.chunks.get(key("r", 0))
    lines = [line for line in capsys.readouterr().err.splitlines() if "transport.expired" in line]
    assert len(lines) == 1
    assert '"request_id":"r"' in lines[0].replace('": ', '":')
    assert '"bytes":100' in lines[0].replace('": ', '":')


def test_ch7_ten_thousand_requests_leave_a_bounded_memory(make_bench: MakeBench) -> None:
    bench = make_bench(remembered=100)

    def run(count: int) -> None:
        for number in range(count):
            name = f"request{number}"
            for chunk in range(3):
                bench.chunks.put(key(name, chunk), message(bytes(2000), finished=chunk == 2 and number % 3 != 0))
            if number % 2:
                for chunk in range(3):
                    bench.chunks.get(key(name, chunk))
            bench.chunks.cleanup(name)

    run(200)
    gc.collect()
    tracemalloc.start()
    run(10_000)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert bench.stats["unread"] == bench.stats["unread_bytes"] == 0
    assert grown < 100_000


def test_a_late_repeat_of_a_remembered_request_revives_nothing(make_bench: MakeBench) -> None:
    bench = make_bench(remembered=10)
    last = message("end", finished=True)
    bench.chunks.put(key("r", 0), message())
    bench.chunks.put(key("r", 1), last)
    for number in range(2):
        bench.chunks.get(key("r", number))
    for number in range(9):
        bench.chunks.put(key(f"later{number}", 0), message(finished=True))
        bench.chunks.get(key(f"later{number}", 0))
    bench.chunks.put(key("r", 1), last)
    assert bench.chunks.get(key("r", 1)) is None
    assert (bench.stats["duplicates"], bench.stats["unread"]) == (1, 0)


def test_threads_put_and_take_at_once(make_bench: MakeBench) -> None:
    bench = make_bench(request_chunks=8)
    got: dict[str, list[int]] = {f"r{number}": [] for number in range(4)}

    def write(request: str) -> None:
        number = 0
        while number < 500:
            try:
                bench.chunks.put(key(request, number), message(number, finished=number == 499))
            except TransportFull:
                room.wait(0.001)
            else:
                number += 1

    def read(request: str) -> None:
        while len(got[request]) < 500:
            taken = bench.chunks.get(key(request, len(got[request])))
            if taken is not None:
                got[request].append(taken["data"])
            else:
                room.wait(0.0005)

    room = threading.Event()
    threads = [threading.Thread(target=act, args=(request,)) for request in got for act in (write, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert all(numbers == list(range(500)) for numbers in got.values())
    assert (bench.stats["unread"], bench.stats["unread_bytes"]) == (0, 0)


def test_equal_links_share_and_others_do_not(make_bench: MakeBench) -> None:
    bench = make_bench()
    again = bench.transport.chunks(ChunkLink("edge", 0, 1, role="receive"))
    replica = bench.transport.chunks(ChunkLink("edge", 0, 1, replica=1))
    other = bench.transport.chunks(ChunkLink("other", 0, 1))
    bench.chunks.put(key("r", 0), message("shared"))
    assert replica.get(key("r", 0)) is None
    assert other.get(key("r", 0)) is None
    assert again.get(key("r", 0)) is not None
    replica.put(key("r", 0), message())
    assert bench.stats["puts"] == 2, "replicas of an edge are counted together"


def test_tr12_the_time_from_put_to_get_is_counted(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.chunks.put(key("r", 0), message(b"x" * 100))
    bench.clock.advance(2)
    bench.chunks.put(key("r", 1), message(b"x" * 100))
    bench.clock.advance(1)
    for number in range(2):
        bench.chunks.get(key("r", number))
    assert (bench.stats["wait_seconds"], bench.stats["bytes"]) == (4, 232)
