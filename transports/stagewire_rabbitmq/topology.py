"""Which queues there are and with which arguments: pure functions, so that both ends declare the same (TR-1).

One long-lived durable queue per (edge, consumer replica) and per mailbox; identity of requests and chunks is inside the
messages. Never a queue per request or per chunk: declaring and deleting them costs more than the chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stagewire import DEAD_SUFFIX, ChunkLink, Traffic
from stagewire_rabbitmq.options import RabbitMQOptions

PARKED_SUFFIX = ".parked"


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue as it is declared; equal declarations are harmless, different ones are refused by the broker (406)."""

    name: str
    arguments: dict[str, Any]


def _common(options: RabbitMQOptions) -> dict[str, Any]:
    arguments: dict[str, Any] = {"x-expires": int(options.queue_expires * 1000)}
    if options.queue_type == "quorum":
        arguments["x-queue-type"] = "quorum"
    return arguments


def all_queues(options: RabbitMQOptions, traffic: Traffic) -> list[Queue]:
    """Return every lasting queue that a pipeline with this traffic declares; those of one process are not among them.

    See `grant_queue` and `reply_queue` for those.
    """
    queues = [
        *(make(options, link) for link in traffic.links for make in (chunk_queue, parked_queue)),
        *(mailbox_queue(options, mailbox) for mailbox in traffic.mailboxes),
        *(dead_queue(options, name) for name in [*(link.edge for link in traffic.links), *traffic.mailboxes]),
    ]
    return list({queue.name: queue for queue in queues}.values())


def chunk_queue(options: RabbitMQOptions, link: ChunkLink) -> Queue:
    """Return the queue of one link: bounded, its messages expire, one consumer at a time reads it."""
    return Queue(
        f"{options.prefix}.chunks.{link.edge}.{link.replica}",
        {
            **_common(options),
            "x-single-active-consumer": True,
            "x-message-ttl": int(options.expires * 1000),
            "x-max-length-bytes": int(options.queue_bytes),
            "x-overflow": "reject-publish",
        },
    )


def parked_queue(options: RabbitMQOptions, link: ChunkLink) -> Queue:
    """Return the queue that takes what nobody has asked for yet, so that it does not stand in the way (TR-4)."""
    name = chunk_queue(options, link).name + PARKED_SUFFIX
    return Queue(name, {**_common(options), "x-message-ttl": int(options.expires * 1000)})


def mailbox_queue(options: RabbitMQOptions, mailbox: str) -> Queue:
    """Return the queue of a mailbox; one for dead letters loses its oldest when it is full (TR-6)."""
    bounds = {
        "x-max-length": options.mailbox_messages,
        "x-max-length-bytes": int(options.queue_bytes),
        "x-overflow": "drop-head" if mailbox.endswith(DEAD_SUFFIX) else "reject-publish",
    }
    return Queue(f"{options.prefix}.mailbox.{mailbox}", {**_common(options), **bounds})


def dead_queue(options: RabbitMQOptions, name: str) -> Queue:
    """Return the queue of what a mailbox, or an edge, could not get handled: a mailbox as any other (TR-6)."""
    return mailbox_queue(options, name + DEAD_SUFFIX)


def grant_queue(options: RabbitMQOptions, client: str) -> Queue:
    """Return the queue on which one process learns what was read of its chunks; it goes soon after its process."""
    return Queue(f"{options.prefix}.grants.{client}", {**_common(options), "x-expires": 60_000})


def reply_queue(options: RabbitMQOptions, client: str) -> Queue:
    """Return the queue on which one process takes replies; it goes soon after its process."""
    return Queue(f"{options.prefix}.replies.{client}", {**_common(options), "x-expires": 60_000})
