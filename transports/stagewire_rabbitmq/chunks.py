"""The blocking face over one link (`ChunkTransport`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from stagewire import ChunkKey, ChunkMessage, Closed, Permanent, Retryable, TransportFull
from stagewire_rabbitmq.frames import encode_message, pack_entry
from stagewire_rabbitmq.grants import Told
from stagewire_rabbitmq.lanes import Lane
from stagewire_rabbitmq.outgoing import Outgoing, Sent
from stagewire_rabbitmq.publisher import Publisher, unconfirmed
from stagewire_rabbitmq.reader import LinkReader
from stagewire_rabbitmq.runs import Name
from stagewire_rabbitmq.wire import Wire


class RabbitMQChunks:
    """Any number of threads may call any method. A ``put`` waits at most ``put_timeout`` seconds for its confirm.

    ``reply_to`` names the queue on which this process takes grants.
    """

    def __init__(
        self, wire: Wire, publisher: Publisher, lane: Lane, outgoing: Outgoing, *, reply_to: str, put_timeout: float
    ) -> None:
        self.reader: LinkReader | None = None
        self._wire = wire
        self._publisher = publisher
        self._lane = lane
        self._outgoing = outgoing
        self._reply_to = reply_to
        self._put_timeout = put_timeout
        self._closed = False
        self._count_lock = threading.Lock()

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Publish one chunk and wait for its confirm (TR-1)."""
        (result,) = self.put_many([(key, message)])
        if result is not None:
            raise result

    def put_many(self, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> list[Exception | None]:
        """Publish several chunks, together where they fit (TR-9); returns one result each.

        Once one of a request has failed, its later ones fail too; other requests are not touched.
        """
        if self._closed:
            raise Closed("the chunk transport was closed")
        results: list[Exception | None] = [None] * len(items)
        failed: dict[Name, Exception] = {}
        sent: list[tuple[int, Sent]] = []
        contents: list[bytes] = []
        for place, (key, message) in enumerate(items):
            name = (key.stage, key.request)
            try:
                if name in failed:
                    raise _after(failed[name], key)
                each, content = self._admit(key, message)
            except (Permanent, TransportFull) as error:
                results[place] = error
                failed.setdefault(name, error)
            else:
                sent.append((place, each))
                contents.append(content)
        for (place, _sent), result in zip(sent, self._publish(contents, sent), strict=True):
            results[place] = result
        return results

    def _admit(self, key: ChunkKey, message: ChunkMessage) -> tuple[Sent, bytes]:
        content = encode_message(key, message)
        try:
            sent = self._outgoing.admit(key, message, len(content))
        except TransportFull:
            with self._count_lock:
                self._lane.counters.full += 1
            self._ask(key)
            raise
        return sent, pack_entry(key, sent.run, content)

    def _ask(self, key: ChunkKey) -> None:
        """Ask what of a request is still unread, when nothing was heard for a while."""
        if (mark := self._outgoing.mark(key)) is not None:
            run, chunk = mark
            entry = pack_entry(ChunkKey(key.request, key.stage, chunk), run, b"")
            self._publisher.submit(self._lane, [entry], reply_to=self._reply_to)

    def _publish(self, contents: Sequence[bytes], sent: Sequence[tuple[int, Sent]]) -> list[Exception | None]:
        if not contents:
            return []
        ticket = self._publisher.submit(self._lane, contents, reply_to=self._reply_to)
        results: Sequence[Exception | None] = ticket.results
        if not ticket.wait(self._put_timeout):
            self._publisher.abandon(self._lane, ticket)
            late = unconfirmed(self._wire, self._put_timeout)
            results = [result if done else late for result, done in zip(results, ticket.settled, strict=True)]
        return self._settle([each for _place, each in sent], results)

    def _settle(self, sent: Sequence[Sent], results: Sequence[Exception | None]) -> list[Exception | None]:
        settled = _in_order(sent, results) if any(results) else list(results)
        self._outgoing.settle(zip(sent, settled, strict=True))
        put = [each.size for each, result in zip(sent, settled, strict=True) if result is None]
        with self._count_lock:
            self._lane.counters.puts += len(put)
            self._lane.counters.bytes += sum(put)
        return settled

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        """Take a chunk that was delivered here; never waits for the network (TR-8)."""
        messages = self.get_many(key, 1)
        return messages[0] if messages else None

    def get_many(self, key: ChunkKey, limit: int) -> Sequence[ChunkMessage]:
        """Take the chunk with this key and those right after it, up to the final one and at most ``limit``."""
        if self._closed:
            raise Closed("the chunk transport was closed")
        reader = self.reader
        if reader is None:
            raise Permanent(f"this end only sends: open the link with role 'receive' or 'both' to get {key}")
        if reader.refused is not None:
            raise reader.refused
        return reader.get_many(key, limit)

    @property
    def unread(self) -> tuple[int, int]:
        """How many messages were delivered here and are not acknowledged, and their bytes."""
        return (0, 0) if self.reader is None else self.reader.unread

    def set_wakeup(self, callback: Callable[..., None]) -> None:
        """Call back, from the wire's thread, when chunks were delivered: with the ids of their requests."""
        if self.reader is not None:
            self.reader.on_arrival = callback

    def heard(self, told: Told) -> None:
        """Open windows, as the reader tells. On the wire's thread."""
        for stage, request, run, base in told.bases:
            self._outgoing.grant((stage, request), run, base)

    def cleanup(self, request_id: str) -> None:
        """Drop what was delivered for the request and not taken, and what the sender remembers of it."""
        self._outgoing.forget(request_id)
        if self.reader is not None:
            self.reader.cleanup(request_id)

    def close(self) -> None:
        """Stop reading and putting on this link. Idempotent; the connection is the transport's."""
        self._closed = True
        if self.reader is not None:
            self.reader.close()


def _after(earlier: Exception, key: ChunkKey) -> Exception:
    """Return the error of a chunk that was not put because an earlier one of its request was not."""
    return type(earlier)(f"chunk {key} was not put, since an earlier one of its request was not: {earlier}")


def _in_order(sent: Sequence[Sent], results: Sequence[Exception | None]) -> list[Exception | None]:
    """Let no chunk count as put when an earlier one of its request does not: it may have got past that one."""
    failed: set[Name] = set()
    settled: list[Exception | None] = []
    for each, result in zip(sent, results, strict=True):
        name = (each.key.stage, each.key.request)
        if result is not None:
            failed.add(name)
        overtook = result is None and name in failed
        settled.append(Retryable(f"chunk {each.key} may have overtaken one that failed") if overtook else result)
    return settled


def wait_until_flushed(publisher: Publisher, timeout: float) -> int:
    """Wait until everything is confirmed; returns how many parcels are not, when the time is up (TR-11)."""
    ends = time.monotonic() + timeout
    while (left := publisher.outstanding) and time.monotonic() < ends:
        time.sleep(0.005)
    return left
