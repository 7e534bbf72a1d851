"""Reads a configuration file into text, with what is wrong with it as problems."""

from __future__ import annotations

import re
from pathlib import Path

from stagewire.config.tree import LIMITS
from stagewire.errors import Location, Problem, bounded

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What YAML calls non-printable."""


class Unreadable(Exception):
    """A file, or the rest of it, cannot be understood at all."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, without its byte-order mark. Raises `Unreadable`."""
    data = _read(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        message = f"is not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        raise Unreadable(Problem(message, (), _at_end_of(before, path))) from None
    if bad := _FORBIDDEN.search(text):
        message = f"the character U+{ord(bad.group()):04X} is not allowed in YAML; remove it"
        raise Unreadable(Problem(message, (), _at_end_of(text[: bad.start()], path)))
    return text


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(LIMITS.bytes + 1)
    except FileNotFoundError:
        raise _unreadable(path, "no such file; check the path") from None
    except IsADirectoryError:
        raise _unreadable(path, "is a directory; name the file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _unreadable(path, f"cannot be read: {bounded(reason or 'input/output error', 200)}") from None
    if len(data) > LIMITS.bytes:
        raise _unreadable(path, f"is larger than {LIMITS.bytes:,} bytes; is it a configuration?")
    return data


def _unreadable(path: Path, message: str) -> Unreadable:
    return Unreadable(Problem(message, (), Location(path, 1, 1)))


def _at_end_of(text: str, path: Path) -> Location:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return Location(path, len(lines), len(lines[-1]) + 1)
