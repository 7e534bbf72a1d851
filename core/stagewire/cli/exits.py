"""What the program's exit status means."""

from __future__ import annotations

from enum import IntEnum
from signal import Signals


class Exit(IntEnum):
    """The exit statuses. A clean stop by a signal exits with 128 + its number, as shells have it."""

    OK = 0
    FAILED = 1
    USAGE = 2
    FORCED = 3
    INTERRUPTED = 128 + Signals.SIGINT
    BROKEN_PIPE = 128 + Signals.SIGPIPE


HELP = """\b
Exit status:
  0    fine
  1    the run failed, or doctor found something broken
  2    the configuration or the usage is wrong, or a backend cannot be used
  3    a stop did not end by its deadline and was forced
  130  stopped cleanly by Ctrl-C (SIGINT)
  143  stopped cleanly by SIGTERM
"""
"""The same for ``--help``."""


def status_of_stop(reason: str | None) -> int | None:
    """Return the exit status of a clean stop whose reason names a signal; ``None`` for any other reason."""
    if reason is None or reason not in Signals.__members__:
        return None
    return 128 + Signals[reason]
