"""Acknowledgements: only of this channel's deliveries, several at once only for a contiguous beginning."""

from __future__ import annotations

from typing import Any

import pytest

from stagewire import Permanent, Retryable
from stagewire_rabbitmq.tap import Delivered, Tap
from stagewire_rabbitmq.topology import Queue


@pytest.fixture
def delivered() -> list[Delivered]:
    return []


@pytest.fixture
def lost() -> list[int]:
    return []


@pytest.fixture
def tap(wire: Any, delivered: list[Delivered], lost: list[int]) -> Tap:
    tap = Tap(wire, Queue("q", {}), 10, deliver=delivered.append, lost=lost.append)
    wire.add(tap)
    return tap


def test_tr2_the_oldest_are_acknowledged_in_one_go_and_others_one_by_one(wire: Any, tap: Tap) -> None:
    channel = wire.connect()
    for tag in range(1, 7):
        channel.arrive(tag)
    for tag in (2, 1, 5):
        tap.ack(tag, tap.epoch)
    tap.flush()
    assert channel.acked == [(2, True), (5, False)]
    tap.ack(3, tap.epoch)
    tap.flush()
    assert channel.acked[2:] == [(3, True)]
    tap.flush()
    assert len(channel.acked) == 3


def test_rabbitmq_trap_a_tag_of_a_lost_channel_is_never_sent(wire: Any, tap: Tap, lost: list[int]) -> None:
    wire.connect().arrive(1)
    old = tap.epoch
    wire.lose(Retryable("cut"))
    assert lost == [old]
    channel = wire.connect()
    channel.arrive(1)
    tap.ack(1, old)
    tap.give_back(1, old)
    tap.ack(99, tap.epoch)
    tap.flush()
    assert (channel.acked, channel.nacked) == ([], [])
    tap.give_back(1, tap.epoch)
    assert channel.nacked == [1]


def test_rabbitmq_trap_a_consumer_that_the_broker_cancelled_comes_back(
    wire: Any, tap: Tap, delivered: list[Delivered]
) -> None:
    channel = wire.connect()
    channel.deliver = lambda *_args: None
    channel.cancelled(None)
    assert channel.declared == ["q", "q"]
    channel.arrive(1, b"after")
    assert [each.body for each in delivered] == [b"after"]
    assert tap.flowing


def test_rabbitmq_trap_a_queue_with_other_arguments_is_a_refusal_and_a_lost_connection_is_none(
    wire: Any, tap: Tap
) -> None:
    wire.connect()
    wire.lose(Retryable("cut"))
    assert tap.refused is None
    wire.connect()
    tap.down(Permanent("406"))
    assert str(tap.refused) == "406"
    wire.connect()
    assert tap.refused is None


def test_tr5_a_paused_tap_takes_nothing_until_it_is_resumed(wire: Any, tap: Tap) -> None:
    channel = wire.connect()
    tap.pause()
    flowing = [tap.flowing]
    first = channel.deliver
    tap.resume()
    assert [*flowing, tap.flowing] == [False, True]
    assert channel.deliver is not first, "it consumes again"
