"""Large commands go in slices."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stagewire_redis.slices import SLICE, slices, slicing


@pytest.mark.parametrize("sizes", [[], [5], [SLICE], [SLICE - 1, 2], [9, 3 * SLICE + 7, 9, 0, 5], [SLICE, SLICE]])
def test_tr10_slices_hold_the_same_bytes_and_are_small(sizes: list[int]) -> None:
    pieces = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    found = [b"".join(group) for group in slices(pieces)]
    assert b"".join(found) == b"".join(pieces)
    assert all(0 < len(group) <= SLICE for group in found)


class Recorder:
    """A connection that notes what it is given, and fails as told."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.sent: list[tuple[Any, bool]] = []
        self.fail_at = fail_at

    async def send_packed_command(self, command: Any, check_health: Any = True) -> None:
        self.sent.append((command, check_health))
        if len(self.sent) == self.fail_at:
            raise ConnectionError("cut off")


def test_tr10_the_health_is_checked_before_a_command_and_never_within_it() -> None:
    connection = slicing(Recorder)()
    asyncio.run(connection.send_packed_command([b"x" * 2 * SLICE]))
    assert [checked for _pieces, checked in connection.sent] == [True, False]
    asyncio.run(connection.send_packed_command(b"PING"))
    assert connection.sent[-1] == (b"PING", True)


def test_tr10_after_a_failure_nothing_more_of_the_command_is_sent() -> None:
    connection = slicing(Recorder)(fail_at=2)
    with pytest.raises(ConnectionError, match="cut off"):
        asyncio.run(connection.send_packed_command([b"x" * 4 * SLICE]))
    assert len(connection.sent) == 2
