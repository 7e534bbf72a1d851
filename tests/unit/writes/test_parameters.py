"""The numbers of WS-1 and TK-3 are the defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from stagewire.claims import temp_keys
from stagewire_writes import ExportOptions, SessionOptions, WritesOptions
from stagewire_writes.handlers import GET_TIMEOUT
from stagewire_writes.outgoing import cut

MIB = 1024 * 1024
S = SessionOptions()


def test_ws1_sizes() -> None:
    assert (S.submit, S.frame, S.batch_frames, S.batch) == (32 * MIB, 8 * MIB, 4, 32 * MIB)
    assert (S.window, S.agent_queue, S.senders, S.small_put) == (128 * MIB, 32 * MIB, 4, 4 * MIB)


@pytest.mark.parametrize(("mib", "reference", "raw"), [(0, 10, 10), (32, 42, 26), (230, 240, 120), (4096, 240, 120)])
def test_ws1_timeouts(mib: int, reference: float, raw: float) -> None:
    assert S.reference_timeout.of(mib * MIB) == reference
    assert S.raw_timeout.of(mib * MIB) == raw
    assert S.control_timeout == 240


def test_ws1_ws8_ls5_the_lease_and_the_get() -> None:
    options = WritesOptions(exports={"data": ExportOptions(root=Path("x"))})
    assert (options.keys.ttl, options.keys.cadence, GET_TIMEOUT, options.deadline) == (180, 60, 10, 30)


def test_tk3_numbers() -> None:
    assert (temp_keys.TRACKED, temp_keys.STORED_TIMEOUT, temp_keys.PUT_TIMEOUT) == (64, 10, 30)
    assert (temp_keys.DELETE_TIMEOUT, temp_keys.FIRST_BACKOFF, temp_keys.LAST_BACKOFF) == (1, 0.1, 5)
    assert (temp_keys.JITTER, temp_keys.RECHECK, temp_keys.GRACE) == (0.25, 5, 5)


def test_ws1_a_frame_is_never_larger_than_8_mib() -> None:
    with pytest.raises(ValidationError, match="less than or equal"):
        SessionOptions(frame=8 * MIB + 1)


@pytest.mark.parametrize(("size", "frames"), [(1, [[1]]), (8, [[8]]), (33, [[8, 8, 8, 8], [1]]), (64, [[8] * 4] * 2)])
def test_ws2_a_batch_holds_consecutive_frames_of_one_submit(size: int, frames: list[list[int]]) -> None:
    options = SessionOptions(frame=8, batch=32)
    batches = cut(memoryview(bytes(range(size))), 100, 7, options)

    assert [batch.lengths for batch in batches] == frames
    sequence, offset = 7, 100
    for batch in batches:
        assert (batch.sequence, batch.offset) == (sequence, offset)
        assert b"".join(batch.frame(i) for i in range(len(batch.lengths))) == batch.view
        sequence, offset = sequence + len(batch.lengths), offset + batch.size
    assert offset == 100 + size


def test_ws2_frames_are_slices_without_a_copy() -> None:
    data = bytes(64)
    assert all(batch.view.obj is data for batch in cut(memoryview(data), 0, 0, SessionOptions(frame=8, batch=32)))
