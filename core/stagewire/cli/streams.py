"""The program's standard streams, which may be closed, broken, full, or of a poor encoding."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

import click

from stagewire.cli.exits import Exit

STANDARD = 2
"""The highest descriptor of a standard stream."""


def open_standard_streams() -> None:
    """Put the null device where a standard stream was closed before the start.

    Else the next file that is opened would get its descriptor, and take what is said to a person.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= STANDARD:
        os.set_inheritable(fd, True)  # noqa: FBT003 — takes no keyword
    os.close(fd)
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()


def tell(line: str) -> None:
    """Say something to a person on standard error; that nobody reads it is no reason to stop."""
    with suppress(OSError):
        click.echo(line, err=True)


def flushed(status: int) -> int:
    """Write out standard output; returns the status, or that of a failure when it cannot be written.

    Raises:
        BrokenPipeError: Its reader has gone.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(sys.stdout)
        tell(f"error: standard output cannot be written: {error.strerror}")
        return status or Exit.FAILED
    return status


def silence(stream: TextIO) -> None:
    """Send the rest of a stream that takes no more to nowhere, so that the interpreter does not stumble at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)


def give_up_broken(stream: TextIO) -> None:
    """Write the stream out; when it cannot be, `silence` it."""
    try:
        stream.flush()
    except OSError:
        silence(stream)


def escape_what_cannot_be_encoded(stream: object) -> None:
    """Let a file name that the terminal's encoding does not have be written escaped instead of ending the program."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 — to the end of the process
