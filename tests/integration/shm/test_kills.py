"""A killed process leaves nothing that anybody sees, nothing beyond its leases, and no lock."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stagewire import KVError

from .peer import Peer

pytestmark = pytest.mark.integration

SIZE = 3_000_000


def test_tk5_a_process_cut_off_at_any_call_leaves_nothing(shm: Path) -> None:
    program = Path(__file__).with_name("cut.py")
    done = subprocess.run([sys.executable, str(program), str(shm)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100, "the work has more calls than that"


def test_tk5_processes_killed_under_load_leave_nothing_beyond_the_ttl(shm: Path) -> None:
    ttl, moments = 0.3, random.Random(7)
    with Peer(shm, max_bytes=20 * SIZE, sweep=0.1) as survivor:
        for _ in range(int(os.environ.get("STAGEWIRE_CHAOS_RUNS", "2"))):
            peer = Peer(shm, max_bytes=20 * SIZE)
            peer.tell("put_for_ever", "key", SIZE, ttl)
            time.sleep(moments.uniform(0.02, 0.15))
            peer.kill()
            value = survivor.ask("read", "key")
            assert value is None or (len(set(value)) == 1 and len(value) in (SIZE, SIZE // 2)), "whole or not at all"
            deadline = time.monotonic() + ttl + 10
            while survivor.ask("keys"):
                assert time.monotonic() < deadline, "it outlives its lease"
                time.sleep(0.02)
        for number in range(19):
            survivor.ask("put", str(number), bytes(SIZE), None)


def test_tk4_what_a_killed_reader_held_is_used_again(shm: Path) -> None:
    with Peer(shm, max_bytes=SIZE * 4 // 3) as writer:
        writer.ask("put", "key", bytes(SIZE), None)
        with Peer(shm) as reader:
            assert reader.ask("hold", "holder", "key")
            writer.ask("delete", "key")
            with pytest.raises(KVError, match="what readers hold"):
                writer.ask("put", "key", bytes(SIZE), None)
        writer.ask("put", "key", bytes(SIZE), None)


def test_kv_a_sweep_takes_what_a_killed_writer_left(shm: Path) -> None:
    """The others clean up by themselves: nobody has to come and use the store."""
    with Peer(shm, sweep=0.05, idle=0.05):
        with Peer(shm) as writer:
            writer.ask("put", "key", bytes(SIZE), writer.ask("grant", 0.2))
        deadline = time.monotonic() + 10
        while list(shm.glob("stagewire-*/segment-*")):
            assert time.monotonic() < deadline, "the segment is not given back"
            time.sleep(0.02)
