"""Claim-check over the blocking face: what is put large travels as a claim, and the receiver cannot tell (TR-10)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from stagewire.claims.claim_check import Claim, ClaimCheck
from stagewire.errors import Retryable, TransportError
from stagewire.spec.transport import ChunkKey, ChunkMessage, ChunkTransport, WakeUp

T = TypeVar("T")

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
        self._sent: dict[ChunkKey, tuple[ChunkMessage, ChunkMessage, Claim]] = {}
        self._fetching: dict[ChunkKey, tuple[ChunkMessage, Future[Any]]] = {}
        self._room = asyncio.Semaphore(FETCHES)
        self._wakeup: WakeUp = lambda *_requests: None

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Put a chunk, its payload by claim when it is large."""
        (result,) = self.put_many([(key, message)])
        if result is not None:
            raise result

    def put_many(self, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> Sequence[Exception | None]:
        """Put several chunks; those whose payload could not be stored fail by themselves."""
        results: list[Exception | None] = [None] * len(items)
        small: list[tuple[ChunkKey, ChunkMessage]] = []
        places: list[int] = []
        for place, (key, message) in enumerate(items):
            try:
                small.append((key, self._outgoing(key, message)))
                places.append(place)
            except TransportError as error:
                results[place] = error
        for place, result in zip(places, self._put_small(small), strict=True):
            results[place] = result
            self._settle(items[place][0], result)
        return results

    def _put_small(self, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> Sequence[Exception | None]:
        together = getattr(self._inner, "put_many", None)
        if together is not None:
            results: Sequence[Exception | None] = together(items)
            return results
        return [_outcome(self._inner.put, key, message) for key, message in items]

    def _outgoing(self, key: ChunkKey, message: ChunkMessage) -> ChunkMessage:
        """Return what travels: for a repeat the same object again, which tells it from the next run's beginning."""
        if not self._check.is_large(message["data"]):
            return message
        with self._lock:
            before = self._sent.get(key)
        if before is not None and before[0] is message:
            return before[1]
        claim = self._on_loop(self._check.check_in(message["data"]))
        outgoing = ChunkMessage(**{**message, "data": None, "claim": claim.key})
        with self._lock:
            self._sent[key] = (message, outgoing, claim)
        return outgoing

    def _settle(self, key: ChunkKey, result: Exception | None) -> None:
        if isinstance(result, Retryable):
            return
        with self._lock:
            sent = self._sent.pop(key, None)
        if sent is not None:
            self._loop.call_soon_threadsafe(sent[2].hand_over if result is None else sent[2].drop)

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
            sent = [self._sent.pop(key)[2] for key in [key for key in self._sent if key.request == request_id]]
        for payload in payloads:
            payload.cancel()
        for claim in sent:
            self._loop.call_soon_threadsafe(claim.drop)

    def close(self) -> None:
        """Close the inner face and stop fetching."""
        self._inner.close()
        with self._lock:
            payloads = [payload for _message, payload in self._fetching.values()]
            self._fetching.clear()
        for payload in payloads:
            payload.cancel()

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(STORE_TIMEOUT)
        except FutureTimeoutError:
            future.cancel()
            raise Retryable(f"the payload was not stored within {STORE_TIMEOUT:g} s") from None


def _outcome(put: Callable[[ChunkKey, ChunkMessage], None], key: ChunkKey, message: ChunkMessage) -> Exception | None:
    try:
        put(key, message)
    except TransportError as error:
        return error
    return None
