"""What orchestrators and workers say to each other: small records, one mailbox message each.

A worker is known by a *name* drawn when it starts. Commands carry the name that they are for, so what was meant for a
worker that died never reaches its successor; reports carry it as well, so what a dead worker said late is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from stagewire import Message, Permanent, StageId

VERSION = 1
"""Of the records below; both ends must have the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One thing that is said. ``sender`` and ``number`` tell a repeat: numbers of one sender only grow."""

    sender: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello(Record):
    """An orchestrator is alive; whoever hosts the seat is to answer with `Here`, unless it is older."""

    orchestrator: str
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bye(Record):
    """An orchestrator leaves: let go of its requests."""

    orchestrator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Record):
    """For one worker, about one use of a request id."""

    orchestrator: str
    worker: str
    started: int
    wire: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit(Command):
    """Begin a request. ``streamed``: the prompt comes over a chunk edge. ``resume``: go on where another left off."""

    request: str
    prompt: Any
    inputs: Mapping[StageId, Sequence[Any]]
    receivers: Mapping[StageId, int]
    streamed: bool
    resume: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort(Command):
    """Let go of a request, and say `Released` when nothing of it is held any more (OR-12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit(Command):
    """So many outputs of a request were taken (OR-16)."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Command):
    """Have the hosted client do something for a resumption and tell the result by `Told`; see `resume`."""

    call: int
    method: str
    arguments: Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Record):
    """From the worker of one seat. ``started`` orders two workers that claim the same seat: the later one has it."""

    stage: StageId
    replica: int
    worker: str
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Here(Report):
    """Registration and heartbeat: what each request does, how far it moved, what it has used up of its inputs."""

    leaving: bool = False
    doing: Mapping[str, str] = field(default_factory=dict)
    moves: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, Mapping[StageId, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs(Report):
    """What requests put out: lists as `pack_output` makes them."""

    outputs: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Report):
    """Nothing of a request is held any more."""

    wire: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Report):
    """The answer to an `Ask`."""

    call: int
    result: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left(Report):
    """The worker ends. ``orderly``: what it was given and has not ended, it never began."""

    orderly: bool


_KINDS: dict[str, type[Record]] = {
    kind.__name__.lower(): kind
    for kind in (Hello, Bye, Submit, Abort, Credit, Ask, Here, Outputs, Released, Told, Left)
}

R = TypeVar("R", bound=Record)


def pack(record: Record) -> Message:
    """Return the message of a record."""
    body = {each.name: getattr(record, each.name) for each in fields(record)}
    return Message({"v": VERSION, "kind": type(record).__name__.lower(), **body})


def unpack(message: Message) -> Record:
    """Return the record of a message. Raises `Permanent` when it is none."""
    body = message.payload
    if not isinstance(body, dict) or body.get("v") != VERSION or body.get("kind") not in _KINDS:
        raise Permanent(f"this is no message of version {VERSION}: run the same stagewire in every process")
    values = {name: value for name, value in body.items() if name not in ("v", "kind")}
    try:
        return _KINDS[body["kind"]](**values)
    except TypeError as error:
        raise Permanent(f"a {body['kind']!r} message has other fields than this version expects: {error}") from error
