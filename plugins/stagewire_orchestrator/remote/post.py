"""Sends records to one mailbox: in order, together where several wait, each exactly once for whoever reads numbers."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from stagewire import BatchTransport, Closed, Message, Permanent, Retryable
from stagewire_orchestrator.remote.protocol import Record, pack

AGAIN = 0.2
"""Seconds before a batch that was not confirmed is put again."""

TOGETHER = 256
"""Records that are put in one batch, at most."""

_Parcel = tuple[Record, Message, "asyncio.Future[None]"]


class Post:
    """One sender of one mailbox. Belongs to one event loop; its owner runs `run` as a task and ends it with `close`.

    What is not confirmed is put again under the same number, until it is: a transport that is away for a while costs
    time, and nothing else.
    """

    def __init__(self, batches: BatchTransport, mailbox: str) -> None:
        self._batches = batches
        self._mailbox = mailbox
        self._sender = secrets.token_hex(6)
        self._number = 0
        self._waiting: deque[_Parcel] = deque()
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, record: Record) -> asyncio.Future[None]:
        """Have a record sent; the future is done once it is confirmed, and fails with `Permanent` if it never can be.

        Nobody need await it.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_seen)
        if self._closed:
            done.set_exception(Closed(f"nothing is sent to mailbox {self._mailbox!r} any more"))
            return done
        self._number += 1
        numbered = replace(record, sender=self._sender, number=self._number)
        self._waiting.append((numbered, pack(numbered), done))
        self._idle.clear()
        self._news.set()
        return done

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                batch = [self._waiting[place] for place in range(min(TOGETHER, len(self._waiting)))]
                await self._send(batch)
                for _ in batch:
                    self._waiting.popleft()
            self._idle.set()

    async def flush(self, timeout: float) -> bool:
        """Wait until everything is confirmed; ``False`` when that takes longer than ``timeout`` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        return self._idle.is_set()

    def close(self) -> None:
        """Take nothing more; what waits is given up."""
        self._closed = True
        for _record, _message, done in self._waiting:
            if not done.done():
                done.cancel()
        self._waiting.clear()
        self._idle.set()

    async def _send(self, batch: Sequence[_Parcel]) -> None:
        try:
            await self._put([message for _record, message, _done in batch])
        except Permanent as error:
            if len(batch) == 1:
                _resolve(batch[0][2], error)
                return
            for parcel in batch:
                await self._send([parcel])
            return
        for _record, _message, done in batch:
            _resolve(done, None)

    async def _put(self, messages: Sequence[Message]) -> None:
        while True:
            try:
                await self._batches.put_batch(self._mailbox, messages)
            except Retryable:
                await asyncio.sleep(AGAIN)
            else:
                return


class Numbers:
    """What was read of each sender: tells a repeat."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def fresh(self, record: Record) -> bool:
        """Return whether the record was not read before, and note it."""
        if record.number <= self._last.get(record.sender, 0):
            return False
        self._last.pop(record.sender, None)
        self._last[record.sender] = record.number
        if len(self._last) > _SENDERS:
            del self._last[next(iter(self._last))]
        return True


_SENDERS = 4_096
"""Senders that are remembered, the latest; a repeat comes within seconds."""


def _resolve(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _seen(done: asyncio.Future[None]) -> None:
    """Mark an error as seen: who cares awaits the future."""
    if not done.cancelled():
        done.exception()
