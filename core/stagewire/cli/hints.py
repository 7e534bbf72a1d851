"""Tells a person what a run leaves aside."""

from __future__ import annotations

import os
import select
import stat
import sys

from stagewire.cli.streams import tell

UNREAD = "hint: standard input holds data that nobody asked for; `--input -` feeds the pipeline with it"


class InputHint:
    """Says, once, that data waits on standard input although the run was given no ``--input``.

    Args:
        wanted: Whether to look at all.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted

    def give(self) -> None:
        """Look, and say so when there is some. Reads nothing and does not wait."""
        if self._wanted and data_waits():
            self._wanted = False
            tell(UNREAD)


def data_waits() -> bool:
    """Return whether standard input is a pipe, a socket or a file that has something to read now."""
    if sys.stdin is None:  # closed at the start; descriptor 0 may be anything
        return False
    status = os.fstat(0)
    if stat.S_ISREG(status.st_mode):
        return os.lseek(0, 0, os.SEEK_CUR) < status.st_size
    return (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)) and _readable()


def _readable() -> bool:
    poll = select.poll()
    poll.register(0, select.POLLIN)
    return any(event & select.POLLIN for _fd, event in poll.poll(0))
