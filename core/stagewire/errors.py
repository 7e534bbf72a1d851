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


class StagewireError(Exception):
    """Base of all errors of this package. ``str(error)`` has at most ``MAX_MESSAGE`` characters."""

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


class Closed(StagewireError):  # noqa: N818 — a state, as in anyio.ClosedResourceError
    """The object was closed; it admits no further operation."""


class TransportError(StagewireError):
    """A transport failed. Raised as one of its two kinds."""


class Retryable(TransportError):  # noqa: N818 — the kind is the name, by the architecture
    """Trying the same operation again may succeed."""


class TransportFull(Retryable):
    """The path has no room now: back-pressure, not a fault. Try again when the reader has caught up."""


class Permanent(TransportError):  # noqa: N818 — see Retryable
    """Trying the same operation again cannot succeed."""


class ChunkExpired(Permanent):
    """The payload that a reference names is gone."""


class CodecError(StagewireError):
    """A payload cannot be encoded, or bytes cannot be decoded."""


class KVError(StagewireError):
    """A KV backend refused or failed an operation."""


class LeaseLost(StagewireError):  # noqa: N818 — the event is the name, by the architecture
    """The lease has ended: what it fenced may no longer be written under it."""


class RequestFailed(StagewireError):  # noqa: N818 — see LeaseLost
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
