"""The literal examples of the source, with its expected values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Collector, Conn, Gate

    from stagewire_chunks import ChunkAdapter

Make = Callable[..., "ChunkAdapter"]
Collect = Callable[["ChunkAdapter"], "Collector"]


def test_ch2_ch3_example_2_snapshot_isolation(conn: Conn, make_adapter: Make, collect: Collect) -> None:
    snd, rcv = make_adapter(conn, 0), make_adapter(conn, 1, 0)
    live = ["a"]
    rcv.load_async("v")
    snd.save_async("v", live, is_final=False)
    live.append("b")
    snd.save_async("v", live, is_final=True)
    live.append("c")
    messages = collect(rcv).until_final("v")
    assert [message["data"] for message in messages] == [["a"], ["a", "b"]]
    assert conn.puts == ["v_0_0", "v_0_1"]


def test_ch9_example_2_poll_ready_takes_what_came_since(conn: Conn, make_adapter: Make, eventually: Any) -> None:
    snd, rcv = make_adapter(conn, 0), make_adapter(conn, 1, 0)
    rcv.load_async("q")
    snd.save_async("q", 1, False)
    snd.save_async("q", 2, False)
    eventually(lambda: rcv.stats()["unread"] == 2)
    assert rcv.poll_ready() == {"q": [{"data": 1, "finished": False}, {"data": 2, "finished": False}]}
    assert rcv.poll_ready() == {}
    snd.save_async("q", 3, True)
    eventually(lambda: rcv.stats()["unread"] == 1)
    assert rcv.poll_ready() == {"q": [{"data": 3, "finished": True}]}


def test_ch8_example_2_a_chunk_put_before_load_is_received(conn: Conn, make_adapter: Make, collect: Collect) -> None:
    snd, rcv = make_adapter(conn, 0), make_adapter(conn, 1, 0)
    snd.save_async("early", "x", True)
    snd.assert_quiescent()
    assert conn.puts == ["early_0_0"]
    rcv.load_async("early")
    assert collect(rcv).until_final("early") == [{"data": "x", "finished": True}]


def test_ch6_example_3_cancel_while_a_build_is_blocked(
    conn: Conn, make_adapter: Make, collect: Collect, make_gate: Callable[[], Gate]
) -> None:
    gate = make_gate()

    def build(payload: str) -> str:
        if payload == "p0":
            gate()
        return payload

    snd, rcv = make_adapter(conn, 0, None, build), make_adapter(conn, 1, 0)
    rcv.load_async("w")
    snd.save_async("w", "p0", False)
    gate.wait_for_visitor()
    for payload in ("p1", "p2", "p3"):
        snd.save_async("w", payload, False)
    snd.save_async("w", "end", True)
    snd.cancel_sender("w")
    gate.open()
    assert collect(rcv).until_final("w") == [{"data": "p0", "finished": False}, {"data": None, "finished": True}]
    assert conn.puts == ["w_0_0", "w_0_1"]
    snd.assert_quiescent()
    rcv.assert_quiescent()


def test_ch3_example_1_both_ends_make_the_same_key(conn: Conn, make_adapter: Make, collect: Collect) -> None:
    """The sender puts its own stage id into the key, the receiver the source's."""
    snd, rcv = make_adapter(conn, 3), make_adapter(conn, 4, src_stage_id=3)
    rcv.load_async("r1")
    for payload in ("x", "y"):
        snd.save_async("r1", payload, False)
    snd.save_async("r1", "z", True)
    messages = collect(rcv).until_final("r1")
    assert [message["data"] for message in messages] == ["x", "y", "z"]
    assert conn.puts == ["r1_3_0", "r1_3_1", "r1_3_2"]
