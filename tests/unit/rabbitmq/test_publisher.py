"""Publishing: together where something waits, confirmed, in order, and again after a loss."""

from __future__ import annotations

from typing import Any

import pytest

from stagewire import Permanent, Retryable, TransportError, TransportFull
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.lanes import YOUNG_REFUSALS, Lane, single
from stagewire_rabbitmq.publisher import IN_FLIGHT, Publisher, unconfirmed
from stagewire_rabbitmq.topology import Queue


def lane(*, most: int = 10, name: str = "q", kind: str = "classic") -> Lane:
    return Lane(Queue(name, {"x-queue-type": kind}), b"".join, most, 1_000, Counters())


def bodies(channel: Any) -> list[bytes]:
    return [each.body for each in channel.published]


def test_tr1_a_put_is_done_once_it_is_confirmed(wire: Any, publisher: Publisher) -> None:
    channel = wire.connect()
    way = publisher.open_lane(lane())
    ticket = publisher.submit(way, [b"a"])
    assert channel.declared == ["q"]
    assert not ticket.wait(0)
    assert publisher.outstanding == 1
    channel.ack(1)
    assert ticket.wait(0)
    assert ticket.results == [None]
    assert publisher.outstanding == 0


def test_tr9_what_waits_travels_together_and_an_idle_lane_adds_no_delay(wire: Any, publisher: Publisher) -> None:
    channel = wire.connect()
    way = publisher.open_lane(lane(most=3))
    for number in range(IN_FLIGHT + 5):
        publisher.submit(way, [b"%x" % number])
    assert bodies(channel) == [b"%x" % number for number in range(IN_FLIGHT)]
    channel.ack(2, multiple=True)
    assert bodies(channel)[IN_FLIGHT:] == [b"89a", b"bc"]


def test_tr9_together_only_up_to_a_size(wire: Any, publisher: Publisher) -> None:
    way = publisher.open_lane(lane())
    publisher.submit(way, [b"x" * 600, b"y" * 300, b"z" * 200])
    assert [len(body) for body in bodies(wire.connect())] == [900, 200]


def test_tr5_a_refusal_fails_what_was_in_the_message_and_nothing_else(wire: Any, publisher: Publisher) -> None:
    channel = wire.connect()
    way = publisher.open_lane(lane())
    refused, taken = publisher.submit(way, [b"a"]), publisher.submit(way, [b"b"])
    channel.nack(1)
    channel.ack(2)
    assert isinstance(refused.results[0], TransportFull)
    assert taken.results == [None]


def test_tr7_unconfirmed_messages_are_sent_again_in_order_after_a_loss(wire: Any, publisher: Publisher) -> None:
    first = wire.connect()
    way = publisher.open_lane(lane(most=1))
    tickets = [publisher.submit(way, [b"%d" % number]) for number in range(4)]
    first.ack(1)
    wire.lose(Retryable("cut"))
    tickets.append(publisher.submit(way, [b"4"]))
    second = wire.connect()
    assert bodies(second) == [b"1", b"2", b"3", b"4"]
    second.ack(4, multiple=True)
    assert all(ticket.results == [None] for ticket in tickets)


def test_tr7_what_was_abandoned_is_not_sent_again(wire: Any, publisher: Publisher) -> None:
    wire.connect()
    way = publisher.open_lane(lane(most=1))
    for sent in (b"sent", b"kept"):
        ticket = publisher.submit(way, [sent])
        if sent == b"sent":
            publisher.abandon(way, ticket)
    wire.lose(Retryable("cut"))
    waiting = publisher.submit(way, [b"waiting"])
    publisher.abandon(way, waiting)
    assert bodies(wire.connect()) == [b"kept"]
    assert publisher.outstanding == 1


def test_tr7_what_waits_for_the_queue_of_another_is_sent_after_a_loss(wire: Any, publisher: Publisher) -> None:
    wire.connect()
    way = publisher.open_lane(Lane(None, single, 1, 0, Counters()))
    wire.lose(Retryable("cut"))
    publisher.submit(way, [b"reply"], to="theirs")
    assert [(each.queue, each.body) for each in wire.connect().published] == [("theirs", b"reply")]


def test_tr1_a_message_that_no_queue_takes_is_sent_again_once_and_is_then_an_error(
    wire: Any, publisher: Publisher
) -> None:
    channel = wire.connect()
    ticket = publisher.submit(publisher.open_lane(lane()), [b"a"])
    channel.give_back(1)
    assert channel.declared == ["q", "q"]
    channel.give_back(2)
    assert isinstance(ticket.results[0], Permanent)
    assert "no queue 'q' took the message" in str(ticket.results[0])


def test_tr1_a_reply_whose_queue_is_gone_is_an_error_at_once(wire: Any, publisher: Publisher) -> None:
    channel = wire.connect()
    ticket = publisher.submit(publisher.open_lane(Lane(None, single, 1, 0, Counters())), [b"a"], to="gone")
    channel.give_back(1)
    assert isinstance(ticket.results[0], Permanent)


def test_rabbitmq_trap_a_young_quorum_queue_that_refuses_is_tried_again_in_order(
    wire: Any, publisher: Publisher
) -> None:
    channel = wire.connect()
    way = publisher.open_lane(lane(most=1, kind="quorum"))
    tickets = [publisher.submit(way, [body]) for body in (b"a", b"b")]
    channel.nack(2, multiple=True)
    wire.run_timers()
    assert bodies(channel) == [b"a", b"b", b"a", b"b"]
    channel.ack(4, multiple=True)
    assert [ticket.results for ticket in tickets] == [[None], [None]]
    late = publisher.submit(way, [b"c"])
    channel.nack(5)
    assert isinstance(late.results[0], TransportFull), "it is not young any more"


def test_tr5_a_quorum_queue_that_stays_full_is_full(wire: Any, publisher: Publisher) -> None:
    channel = wire.connect()
    ticket = publisher.submit(publisher.open_lane(lane(kind="quorum")), [b"a"])
    for tag in range(1, YOUNG_REFUSALS + 2):
        channel.nack(tag)
        wire.run_timers()
    assert isinstance(ticket.results[0], TransportFull)


def test_rabbitmq_trap_a_queue_with_other_arguments_fails_its_own_lane_only(wire: Any, publisher: Publisher) -> None:
    channel = wire.connect()
    channel.answer_declarations = False
    wrong = publisher.open_lane(lane(name="wrong"))
    right = publisher.open_lane(lane(name="right"))
    first = publisher.submit(wrong, [b"a"])
    publisher.down(Permanent("406"))
    assert [str(result) for result in first.results] == ["406"]
    assert [str(result) for result in publisher.submit(wrong, [b"b"]).results] == ["406"]
    publisher.submit(right, [b"c"])
    assert wire.connect().declared == ["right"]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"blocked": True, "blocked_seconds": 2.0}, "stopped publishers (memory or disk alarm) for 2.0 s"),
        ({"fault": Retryable("nothing listens there")}, "nothing listens there"),
        ({}, "the broker does not answer"),
    ],
)
def test_tr7_a_put_past_its_deadline_names_the_cause(wire: Any, state: dict[str, Any], said: str) -> None:
    for name, value in state.items():
        setattr(wire, name, value)
    error: TransportError = unconfirmed(wire, 3)
    assert isinstance(error, Retryable)
    assert said in str(error)
    assert "put it again under the same key" in str(error)
