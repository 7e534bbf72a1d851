"""The blocking face over one link (`ChunkTransport`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from stagewire import ChunkKey, ChunkMessage, Closed, Permanent
from stagewire_rabbitmq.frames import Runs, pack_entry
from stagewire_rabbitmq.lanes import Lane, Ticket
from stagewire_rabbitmq.publisher import Publisher, unconfirmed
from stagewire_rabbitmq.reader import LinkReader
from stagewire_rabbitmq.wire import Wire


class RabbitMQChunks:
    """Any number of threads may call any method. A ``put`` waits at most ``put_timeout`` seconds for its confirm."""

    def __init__(self, wire: Wire, publisher: Publisher, lane: Lane, put_timeout: float) -> None:
        self.reader: LinkReader | None = None
        self._wire = wire
        self._publisher = publisher
        self._lane = lane
        self._put_timeout = put_timeout
        self._runs = Runs()
        self._closed = False

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Publish one chunk and wait for its confirm (TR-1)."""
        (result,) = self.put_many([(key, message)])
        if result is not None:
            raise result

    def put_many(self, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> list[Exception | None]:
        """Publish several chunks, together where they fit (TR-9); returns one result each."""
        if self._closed:
            raise Closed("the chunk transport was closed")
        results: list[Exception | None] = [None] * len(items)
        contents, places = [], []
        for place, (key, message) in enumerate(items):
            try:
                contents.append(pack_entry(key, self._runs.token(key, message), message))
                places.append(place)
            except Permanent as error:
                results[place] = error
        if contents:
            for place, result in zip(places, self._publish(contents), strict=True):
                results[place] = result
        return results

    def _publish(self, contents: Sequence[bytes]) -> list[Exception | None]:
        ticket = self._publisher.submit(self._lane, contents)
        if ticket.wait(self._put_timeout):
            return ticket.results
        self._publisher.abandon(self._lane, ticket)
        return self._late(ticket)

    def _late(self, ticket: Ticket) -> list[Exception | None]:
        late = unconfirmed(self._wire, self._put_timeout)
        return [result if done else late for result, done in zip(ticket.results, ticket.settled, strict=True)]

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        """Take a chunk that was delivered here; never waits for the network (TR-8)."""
        if self._closed:
            raise Closed("the chunk transport was closed")
        reader = self.reader
        if reader is None:
            raise Permanent(f"this end only sends: open the link with role 'receive' or 'both' to get {key}")
        if reader.refused is not None:
            raise reader.refused
        return reader.get(key)

    def get_many(self, key: ChunkKey, limit: int) -> list[ChunkMessage]:
        """Take the chunk with this key and those right after it, up to the final one and at most ``limit``."""
        messages: list[ChunkMessage] = []
        while len(messages) < limit and (message := self.get(key)) is not None:
            messages.append(message)
            if message["finished"]:
                break
            key = ChunkKey(key.request, key.stage, key.chunk + 1)
        return messages

    def set_wakeup(self, callback: Callable[[], None]) -> None:
        """Call back, from the wire's thread, when chunks were delivered."""
        if self.reader is not None:
            self.reader.on_arrival = callback

    def cleanup(self, request_id: str) -> None:
        """Drop what was delivered for the request and not taken, and what the sender remembers of it."""
        self._runs.forget(request_id)
        if self.reader is not None:
            self.reader.cleanup(request_id)

    def close(self) -> None:
        """Stop reading and putting on this link. Idempotent; the connection is the transport's."""
        self._closed = True
        if self.reader is not None:
            self.reader.close()


def wait_until_flushed(publisher: Publisher, timeout: float) -> int:
    """Wait until everything is confirmed; returns how many parcels are not, when the time is up (TR-11)."""
    ends = time.monotonic() + timeout
    while (left := publisher.outstanding) and time.monotonic() < ends:
        time.sleep(0.005)
    return left
