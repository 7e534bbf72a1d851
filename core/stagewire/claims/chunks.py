"""Claim-check over the blocking face: what is put large travels as a claim, and the receiver cannot tell (TR-10)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from stagewire.claims.claim_check import ClaimCheck
from stagewire.claims.outgoing import CheckIn, Window
from stagewire.codec import weigh
from stagewire.errors import Permanent, Retryable, TransportError
from stagewire.spec.transport import ChunkKey, ChunkMessage, ChunkTransport, WakeUp

STORE_TIMEOUT = 30.0
FETCHES = 8
"""Payloads of one link that are fetched at once: each may be tens of MiB, and the store has other users."""

FIRST_PAUSE, LAST_PAUSE = 0.1, 2.0
"""Seconds between two attempts to fetch a payload from a store that fails."""


class ClaimedChunks:
    """A `ChunkTransport` over another one. Any thread may call any method.

    The KV backend belongs to ``loop``, so its operations run there and the caller's thread waits for a put. A ``get``
    does not wait: it begins to fetch the payload, and the chunk is there once that has come.
    """

    def __init__(self, inner: ChunkTransport, check: ClaimCheck, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._check = check
        self._loop = loop
        self._lock = threading.Lock()
        self._sent: dict[ChunkKey, CheckIn] = {}
        self._fetching: dict[ChunkKey, tuple[ChunkMessage, Future[Any]]] = {}
        self._room = asyncio.Semaphore(FETCHES)
        self._wakeup: WakeUp = lambda *_requests: None

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Put a chunk, its payload by claim when it is large."""
        (result,) = self.put_many([(key, message)])
        if result is not None:
            raise result

    def put_many(self, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> Sequence[Exception | None]:
        """Put several chunks, their payloads stored several at once.

        Once one of a request has failed, its later ones fail too; other requests are not touched.
        """
        results: list[Exception | None] = [None] * len(items)
        failed: dict[tuple[int | str, str], TransportError] = {}
        small: list[tuple[ChunkKey, ChunkMessage]] = []
        places: list[int] = []
        for place, ((key, _message), outgoing) in enumerate(zip(items, self._check_in(items), strict=True)):
            run = (key.stage, key.request)
            if run in failed:
                results[place] = _after(failed[run], key)
            elif isinstance(outgoing, TransportError):
                results[place] = failed[run] = outgoing
            else:
                small.append((key, outgoing))
                places.append(place)
        for place, result in zip(places, self._put_small(small), strict=True):
            results[place] = result
        for (key, _message), result in zip(items, results, strict=True):
            self._settle(key, result)
        return results

    def _check_in(self, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> list[ChunkMessage | TransportError]:
        """Return what travels for each chunk, or why it cannot; payloads begin to be stored in order."""
        travels: list[ChunkMessage | TransportError] = [message for _key, message in items]
        window = Window()
        try:
            for place, (key, message) in enumerate(items):
                if not self._check.is_large(message["data"]):
                    continue
                size = weigh(message["data"])
                while not window.has_room(size):
                    oldest = window.end_oldest()
                    travels[oldest] = self._stored(items[oldest][0])
                self._begin(key, message)
                window.begin(place, size)
            while window:
                oldest = window.end_oldest()
                travels[oldest] = self._stored(items[oldest][0])
        except BaseException:
            for key, _message in items:
                self._drop(key)
            raise
        return travels

    def _begin(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Begin to store a payload; one of a repeat is stored already, or on its way."""
        with self._lock:
            before = self._sent.get(key)
            if before is None or before.message is not message:
                self._sent[key] = CheckIn(message, self._check, self._loop)
        if before is not None and before.message is not message:
            before.drop()

    def _stored(self, key: ChunkKey) -> ChunkMessage | TransportError:
        """Return what travels: for a repeat the same object again, which tells it from the next run's beginning."""
        with self._lock:
            check_in = self._sent.get(key)
        if check_in is None:
            return Permanent(f"the request of chunk {key} was cleaned up while its payload was being stored")
        try:
            return check_in.outgoing(STORE_TIMEOUT)
        except TransportError as error:
            self._drop(key)
            return error

    def _drop(self, key: ChunkKey) -> None:
        with self._lock:
            check_in = self._sent.pop(key, None)
        if check_in is not None:
            check_in.drop()

    def _put_small(self, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> Sequence[Exception | None]:
        together = getattr(self._inner, "put_many", None)
        if together is not None:
            results: Sequence[Exception | None] = together(items)
            return results
        return [_outcome(self._inner.put, key, message) for key, message in items]

    def _settle(self, key: ChunkKey, result: Exception | None) -> None:
        if result is not None:
            if not isinstance(result, Retryable):
                self._drop(key)
            return
        with self._lock:
            check_in = self._sent.pop(key, None)
        if check_in is not None:
            check_in.hand_over()

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        """Take a chunk; one whose payload is still being fetched is not there yet.

        Raises:
            ChunkExpired: The payload is gone.
            Retryable: The store has failed for `STORE_TIMEOUT`; the chunk is not lost, the next call fetches it again.
        """
        with self._lock:
            fetching = self._fetching.get(key)
        if fetching is None:
            message = self._inner.get(key)
            if message is None or "claim" not in message:
                return message
            fetching = self._fetch(key, message)
        message, payload = fetching
        if not payload.done():
            return None
        with self._lock:
            self._fetching.pop(key, None)
        try:
            return self._redeemed(message, payload)
        except Retryable:
            self._fetch(key, message)
            raise

    def _fetch(self, key: ChunkKey, message: ChunkMessage) -> tuple[ChunkMessage, Future[Any]]:
        payload = asyncio.run_coroutine_threadsafe(self._redeem(message["claim"]), self._loop)
        with self._lock:
            self._fetching[key] = (message, payload)
        payload.add_done_callback(lambda _payload: self._wakeup())
        return message, payload

    async def _redeem(self, key: str) -> Any:
        async with self._room:
            payload = await self._redeem_patiently(key)
            await self._check.remove(key)
            return payload

    async def _redeem_patiently(self, key: str) -> Any:
        """Fetch a payload, also through a failure of the store: its message was taken, and will not come again."""
        ends, pause = self._loop.time() + STORE_TIMEOUT, FIRST_PAUSE
        while True:
            try:
                return await self._check.redeem(key)
            except Retryable:
                if self._loop.time() + pause > ends:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE)

    def _redeemed(self, message: ChunkMessage, payload: Future[Any]) -> ChunkMessage:
        rest = {name: value for name, value in message.items() if name != "claim"}
        return ChunkMessage(**{**rest, "data": payload.result()})  # type: ignore[typeddict-item]

    def set_wakeup(self, callback: WakeUp) -> None:
        """Call back when something may have arrived, or a payload was fetched."""
        self._wakeup = callback
        inner = getattr(self._inner, "set_wakeup", None)
        if inner is not None:
            inner(callback)

    def cleanup(self, request_id: str) -> None:
        """Drop what is held for the request; claims that nobody redeems end with their lease."""
        self._inner.cleanup(request_id)
        with self._lock:
            fetched = [key for key in self._fetching if key.request == request_id]
            payloads = [self._fetching.pop(key)[1] for key in fetched]
            sent = [self._sent.pop(key) for key in [key for key in self._sent if key.request == request_id]]
        for payload in payloads:
            payload.cancel()
        for check_in in sent:
            check_in.drop()

    def close(self) -> None:
        """Close the inner face and stop fetching."""
        self._inner.close()
        with self._lock:
            payloads = [payload for _message, payload in self._fetching.values()]
            self._fetching.clear()
        for payload in payloads:
            payload.cancel()


def _after(earlier: TransportError, key: ChunkKey) -> TransportError:
    """Return the error of a chunk that was not put because an earlier one of its request was not."""
    return type(earlier)(f"chunk {key} was not put, since an earlier one of its request was not: {earlier}")


def _outcome(put: Callable[[ChunkKey, ChunkMessage], None], key: ChunkKey, message: ChunkMessage) -> Exception | None:
    try:
        put(key, message)
    except TransportError as error:
        return error
    return None
