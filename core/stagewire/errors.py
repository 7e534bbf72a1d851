"""The errors that stagewire raises. Drivers' exceptions are mapped to these at each plugin's border.

Every message says what to do about it, and ``str()`` is bounded so that an error can be logged whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

MAX_MESSAGE = 2_000
"""The most characters that the text of a stagewire error has."""


def bounded(text: str, limit: int = MAX_MESSAGE) -> str:
    """Return ``text`` cut to ``limit`` characters, saying how much was left out."""
    if len(text) <= limit:
        return text
    mark = f"… ({len(text) - limit} more characters)"
    return text[: max(0, limit - len(mark))] + mark


def describe(error: BaseException, limit: int = MAX_MESSAGE) -> str:
    """Return ``Type: text`` of an error, bounded; never raises. What events carry as ``cause``."""
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 — the error to be described matters more than its broken __str__
        text = f"(its text cannot be had: {type(broken).__name__})"
    kind = type(error).__name__
    return bounded(f"{kind}: {text}" if text else kind, limit)


class StagewireError(Exception):
    """Base of all errors of this package. ``str(error)`` has at most ``MAX_MESSAGE`` characters.

    Attributes:
        while_opening: Whether a backend could not be opened: the configuration or its server is wrong, not the work.
    """

    while_opening = False

    def __str__(self) -> str:
        return bounded(super().__str__())


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a configuration file; ``line`` and ``column`` count from 1."""

    file: Path | str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a configuration: where it stands, the path of the value, and what to do.

    ``str(problem)`` reads ``file:line:col: path: message``; parts that are not known are left out.
    """

    message: str
    path: tuple[str | int, ...] = ()
    location: Location | None = None

    def __str__(self) -> str:
        dotted = format_path(self.path)
        return ": ".join(part for part in (str(self.location or ""), dotted, self.message) if part)


def format_path(path: Sequence[str | int]) -> str:
    """Write a path as a person would: ``stages.tone.replicas``, ``edges[1].to``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


class ConfigError(StagewireError):
    """The configuration is wrong. ``problems`` holds every fault found, in the order of the file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __str__(self) -> str:
        return "\n".join(bounded(str(problem)) for problem in self.problems[:50])


class PluginError(StagewireError):
    """A plugin or a provider cannot be used; the message names it and the remedy."""


class Closed(StagewireError):
    """The object was closed; it admits no further operation."""


class TransportError(StagewireError):
    """A transport failed. Raised as one of its two kinds."""


class Retryable(TransportError):
    """Trying the same operation again may succeed."""


class TransportFull(Retryable):
    """The path has no room now: back-pressure, not a fault. Try again when the reader has caught up."""


class Permanent(TransportError):
    """Trying the same operation again cannot succeed."""


class ChunkExpired(Permanent):
    """The payload that a reference names is gone."""


class CodecError(StagewireError):
    """A payload cannot be encoded, or bytes cannot be decoded."""


class KVError(StagewireError):
    """A KV backend refused or failed an operation."""


class LeaseLost(StagewireError):
    """The lease has ended: what it fenced may no longer be written under it."""


class RequestFailed(StagewireError):
    """A request ended in ERROR.

    Attributes:
        request_id: The request.
        stage: The stage (or hook) in which it failed.
        cause: The text of what went wrong; the original exception is ``__cause__`` where it is at hand.
    """

    def __init__(self, request_id: str, stage: Any, cause: str) -> None:
        self.request_id = request_id
        self.stage = stage
        self.cause = bounded(cause)
        super().__init__(f"request {request_id!r} failed in stage {stage!r}: {self.cause}")


class SessionError(StagewireError):
    """A write session was refused or failed."""


class StillHeld(StagewireError):
    """A deadline passed before everything was released (SD-7). What is left stays owned and is tried again.

    Attributes:
        held: What is still held, each as a person would name it.
    """

    def __init__(self, owner: str, held: Sequence[str]) -> None:
        self.held: tuple[str, ...] = tuple(held)
        names = ", ".join(self.held[:20]) or "(nothing named)"
        more = f" and {len(self.held) - 20} more" if len(self.held) > 20 else ""  # noqa: PLR2004 — see the slice above
        super().__init__(f"{owner} was not released in time; still held: {names}{more}. It stays owned: close again")
