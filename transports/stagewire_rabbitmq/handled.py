"""Which batches were handled here, told to their senders a few at a time (TR-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stagewire_rabbitmq.grants import pack_handled
from stagewire_rabbitmq.mailbox import MailFrame

PAUSE = 0.1
"""Seconds for which what is to be told may gather."""


class Handled:
    """Belongs to one event loop. ``most`` batches of one sender are told at once, fewer after a pause."""

    def __init__(self, most: int, tell: Callable[[str, bytes], None]) -> None:
        self._most = most
        self._tell = tell
        self._owed: dict[tuple[str, str], list[int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def note(self, queue: str, frame: MailFrame) -> None:
        """Note that a batch that came from a queue was handled."""
        if frame.reply_to is None:
            return
        owed = self._owed.setdefault((frame.reply_to, queue), [])
        owed.append(frame.number)
        if len(owed) >= self._most:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self.flush)

    def flush(self) -> None:
        """Tell everything now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        owed, self._owed = self._owed, {}
        for (to, queue), numbers in owed.items():
            self._tell(to, pack_handled(queue, numbers))
