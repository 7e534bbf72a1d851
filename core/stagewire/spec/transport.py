"""The transport contract: how chunks and batches travel between stages.

A transport has two faces because it has two kinds of caller. `ChunkTransport` is blocking and thread-safe,
for the ChunkAdapter's own threads; `BatchTransport` is asyncio. Both keep the promises TR-1 … TR-12: at least
once and confirmed, acknowledged after use, in order per (edge, request), bounded, and without head-of-line
blocking. `stagewire.testing.TransportSuite` checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, TypedDict, runtime_checkable

TRANSPORT_STATS = (
    "puts",
    "gets",
    "bytes",
    "outstanding",
    "redeliveries",
    "duplicates",
    "wait_seconds",
    "reconnects",
    "blocked_seconds",
)
"""The counters that every edge and mailbox has (TR-12).

What was put, taken, and how many bytes that was; what is now unconfirmed or taken and not yet acknowledged; what was
delivered again, and what was dropped as a repeat; the sum of the times from put to get; connections made anew; how long
producers waited.
"""

DEAD_SUFFIX = ".dead"
"""The mailbox ``{name}.dead`` takes what ``{name}`` could not get handled (TR-6)."""

DEAD_REASON = "dead-reason"
"""Header of a dead letter: why the last attempt failed."""

DEAD_MAILBOX = "dead-mailbox"
"""Header of a dead letter: the mailbox that it comes from."""

DEAD_DELIVERIES = "dead-deliveries"
"""Header of a dead letter: how often it was delivered there."""

INLINE = "inline"
"""Header of a message whose payload is to travel in the message itself, never as a claim; the value is ``"1"``."""

StageId = int | str
"""Names a stage: its name in a YAML file, or its number in a hand-made pipeline."""


class ChunkKey(str):
    """The key of one chunk: a string whose text is ``{request}_{stage}_{chunk}``, and a structured identity.

    Two ChunkKeys are equal when request, stage and chunk are, so requests ``a`` and ``a_1`` never collide although
    their texts may (CH-3). Against a plain string the text is compared, so a transport may treat a key as a string.
    """

    __slots__ = ("chunk", "request", "stage")

    request: str
    stage: StageId
    chunk: int

    def __new__(cls, request: str, stage: StageId, chunk: int) -> Self:
        key = str.__new__(cls, f"{request}_{stage}_{chunk}")
        key.request = request
        key.stage = stage
        key.chunk = chunk
        return key

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ChunkKey):
            return (self.chunk, self.stage, self.request) == (other.chunk, other.stage, other.request)
        return str.__eq__(self, other) if isinstance(other, str) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return f"ChunkKey({self.request!r}, {self.stage!r}, {self.chunk})"

    def __reduce__(self) -> tuple[type[ChunkKey], tuple[str, StageId, int]]:
        return ChunkKey, (self.request, self.stage, self.chunk)


class _Message(TypedDict):
    data: Any
    finished: bool


class ChunkMessage(_Message, total=False):
    """What is put and got: ``{"data": payload, "finished": is_final}`` (CH-5).

    A terminal that is not a plain END carries one key more: ``error`` (why the request failed upstream) or
    ``cancelled`` (``True``). On its way a large payload may be replaced by ``claim``, the key it is fetched under.
    """

    error: str
    cancelled: bool
    claim: str


@runtime_checkable
class ChunkTransport(Protocol):
    """The blocking face: any number of threads may call any method at any time.

    Three optional methods are looked up by name:

    - ``put_many(items) -> Sequence[Exception | None]`` puts several (key, message) pairs in one go, in order, with one
      result each (TR-9). Once one of a request has failed, its later ones should fail with it instead of overtaking.
    - ``get_many(key, limit) -> Sequence[ChunkMessage]`` takes the chunk with this key and those right after it, in
      order, up to the final one and at most ``limit``; nothing while the first has not arrived. Waits as little as
      ``get``.
    - ``set_wakeup(callback)`` asks for a call, from any thread, when something may have arrived: with the ids of the
      requests that it is for, or with none for any. The call is a hint and may be missed (CH-11).

    The chunks of one request on one link are a *run*: they are put in the order of their ids, from 0 to the one whose
    message is ``finished``. Within a run a key counts once, however often it is put. Once the whole run was put, chunk
    0 under the same request id begins the next run (CH-7), which is read after the one before it. Whoever puts again
    what may have arrived passes the same message object: that tells a repeat from the beginning of the next run.
    """

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Hand one chunk over; returns once the transport has taken responsibility for it (TR-1).

        Raises:
            TransportFull: This request's path has no room now (TR-5); other requests are not affected (TR-4).
            Retryable: It may succeed later. It may also have arrived: put it again under the same key.
            Permanent: It cannot succeed.
        """

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        """Take the chunk with this key, or ``None`` while it has not arrived. Never waits for the network (TR-8).

        Taking acknowledges it (TR-2): a key is handed out once.
        """

    def cleanup(self, request_id: str) -> None:
        """Drop what is still held for the request on this side; later arrivals for it are dropped or expire.

        On the receiving side the runs put so far are given up: what is left of an unfinished one is dropped as it
        arrives, and the next run of the same id is delivered in full. On the sending side nothing that was put is lost:
        only what the sender itself remembers of the request is forgotten.
        """

    def close(self) -> None:
        """Flush within the transport's deadline and let go of everything (TR-11). Idempotent."""


@dataclass(frozen=True, slots=True)
class ChunkLink:
    """One direction of one edge: from every replica of ``source`` to one replica of ``target``.

    ``role`` says which end this process is; ``both`` is for one process that holds the two.
    """

    edge: str
    source: StageId
    target: StageId
    replica: int = 0
    role: Literal["send", "receive", "both"] = "both"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a mailbox. ``payload`` is anything that `stagewire.codec` encodes; headers are short texts."""

    payload: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class Delivery(Protocol):
    """A message that was taken from a mailbox, valid inside the block that took it."""

    @property
    def message(self) -> Message: ...

    @property
    def redelivered(self) -> bool:
        """Whether an earlier consumer took it and did not end well."""

    async def reply(self, payload: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer a `BatchTransport.request`; does nothing when nobody waits for an answer."""


@runtime_checkable
class BatchTransport(Protocol):
    """The asyncio face: named mailboxes. Every method belongs to the event loop on which the transport was opened."""

    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        """Put messages into a mailbox in order; returns once they are confirmed (TR-1).

        Waits while the mailbox is full, for at most ``timeout`` seconds (``None``: the transport's default).

        Raises:
            TransportFull: The mailbox stayed full (TR-5); no message of the batch was put.
            Permanent: A message is too large or cannot be encoded; none was put.
            Retryable: Not confirmed in time; some may have arrived (TR-7).
        """

    def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AbstractAsyncContextManager[Sequence[Delivery]]:
        """Take 1 to ``limit`` messages, in order, for the length of the block.

        ``async with transport.get_batch("jobs", limit=10) as batch:``. Waits until there is one; after ``timeout``
        seconds the batch is empty. Leaving the block normally acknowledges them; leaving it by an exception or a cancel
        gives them back, marked ``redelivered``, to the next taker (TR-2). A message given back more often than the
        transport allows goes to the mailbox ``{mailbox}.dead`` with the reason in its headers, `DEAD_REASON` and so on
        (TR-6).
        """

    async def request(self, mailbox: str, message: Message, *, timeout: float) -> Message:
        """Put one message and wait for its reply.

        Raises:
            Retryable: No reply within ``timeout`` seconds; the request may or may not have been handled.
        """

    async def purge(self, mailbox: str) -> int:
        """Drop what waits in the mailbox; returns how many messages that were."""


class Transport(Protocol):
    """What a transport provider's factory returns. Building it opens nothing; ``open`` connects."""

    async def open(self) -> None:
        """Connect. Raises `TransportError` naming the cause and the remedy."""

    def chunks(self, link: ChunkLink) -> ChunkTransport:
        """Return the chunk face for one link. Calls with equal links share what they carry."""

    def batches(self) -> BatchTransport:
        """Return the batch face."""

    async def close(self) -> None:
        """Close both faces, flushing within the deadline (TR-11). Idempotent."""

    def stats(self) -> Mapping[str, Mapping[str, float]]:
        """Return counters per edge and mailbox (TR-12), such as ``{"a->b": {"puts": 3, "gets": 2}}``.

        Each has at least the names in `TRANSPORT_STATS`. Callable from any thread, also after ``close``.
        """


WakeUp = Callable[..., None]
"""A hint that something may have arrived, for the requests named or for any; from any thread, must return at once."""
