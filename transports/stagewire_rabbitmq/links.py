"""The chunk faces of one transport: what each link sends, reads and counts, and the way back to its senders."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stagewire import ChunkLink, Clock, emit
from stagewire_rabbitmq.chunks import RabbitMQChunks
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.demux import Demux, GrantSteps
from stagewire_rabbitmq.feedback import Feedback
from stagewire_rabbitmq.frames import join_entries
from stagewire_rabbitmq.lanes import Lane, single
from stagewire_rabbitmq.options import MESSAGE_LIMIT, RabbitMQOptions
from stagewire_rabbitmq.outgoing import Outgoing, Window
from stagewire_rabbitmq.publisher import Publisher
from stagewire_rabbitmq.reader import Limits, LinkQueues, LinkReader
from stagewire_rabbitmq.runs import Name
from stagewire_rabbitmq.topology import chunk_queue, dead_queue, parked_queue
from stagewire_rabbitmq.wire import Wire

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

SHARE = 4
"""A sender hears of every fourth part of its window that is gone, so it never closes on a reader that keeps up."""


class Links:
    """Makes the faces of links; equal links, whatever their role, are one."""

    def __init__(
        self,
        options: RabbitMQOptions,
        wires: tuple[Wire, Wire],
        publisher: Publisher,
        feedback: Feedback,
        *,
        clock: Clock,
        log: FilteringBoundLogger,
    ) -> None:
        self._options = options
        self._publishing, self._consuming = wires
        self._publisher = publisher
        self._clock = clock
        self._log = log
        self._links: dict[ChunkLink, RabbitMQChunks] = {}
        self._counters: dict[str, Counters] = {}
        self._feedback = feedback

    def face(self, link: ChunkLink) -> RabbitMQChunks:
        """Return the face of a link; declares its queues."""
        base = ChunkLink(link.edge, link.source, link.target, link.replica)
        chunks = self._links.get(base)
        if chunks is None:
            chunks = self._links[base] = self._make(base)
        if link.role != "receive":
            self._feedback.listen(chunk_queue(self._options, base).name, chunks.heard)
        if link.role != "send" and chunks.reader is None:
            chunks.reader = self._read(base)
        return chunks

    def close(self) -> None:
        """Stop reading and putting."""
        for chunks in self._links.values():
            chunks.close()

    def stats(self) -> Mapping[str, dict[str, float]]:
        """Return the counters per edge."""
        return {edge: counters.snapshot() for edge, counters in list(self._counters.items())}

    def _make(self, link: ChunkLink) -> RabbitMQChunks:
        options = self._options
        counters = self._counters.setdefault(link.edge, Counters())
        queue = chunk_queue(options, link)
        lane = Lane(queue, _join, options.coalesce_chunks, options.coalesce_bytes, counters)
        outgoing = Outgoing(link.edge, Window(options.request_chunks, options.request_bytes), self._clock)
        return RabbitMQChunks(
            self._publishing,
            self._publisher,
            self._publisher.open_lane(lane),
            outgoing,
            reply_to=self._feedback.address,
            put_timeout=options.put_timeout,
        )

    def _read(self, link: ChunkLink) -> LinkReader:
        options = self._options
        open_lane = self._publisher.open_lane
        queues = LinkQueues(
            link.edge,
            chunk_queue(options, link),
            parked_queue(options, link),
            open_lane(Lane(parked_queue(options, link), single, 1, 0, Counters())),
            open_lane(Lane(dead_queue(options, link.edge), single, 1, 0, Counters())),
        )
        demux = Demux(self._counters[link.edge], self._clock, time.time, _steps(options))
        limits = Limits(options.prefetch_messages, options.prefetch_bytes, options.expires, options.gap_timeout)
        reader = LinkReader(
            self._consuming, self._publisher, queues, limits, demux, tell=self._feedback.tell, log=self._log
        )
        reader.on_expiry = partial(self._tell_expired, link.edge)
        reader.start()
        return reader

    def _tell_expired(self, edge: str, names: Sequence[Name]) -> None:
        for _stage, request in names:
            emit(self._log, "transport.expired", edge=edge, request_id=request)


def _join(entries: Sequence[bytes]) -> bytes:
    return join_entries(entries, time.time())


def _steps(options: RabbitMQOptions) -> GrantSteps:
    size = min(options.request_bytes // SHARE, options.request_bytes - MESSAGE_LIMIT)
    return GrantSteps(max(1, options.request_chunks // SHARE), max(1, size))
