"""The pipeline contract: what a pipeline kind (``orchestrator``, ``csp``, …) builds from YAML."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

INPUT_DIRECTORY = "input-directory"
"""The capability of a pipeline kind whose ``--input`` may be a directory."""


class InputStream(Protocol):
    """The bytes that a run is fed with, read block by block as they are asked for."""

    @property
    def name(self) -> str:
        """What a person calls it: a path, or ``<stdin>``."""

    @property
    def size(self) -> int | None:
        """How many bytes there are, where that is known beforehand."""

    def is_same_file(self, path: Path) -> bool:  # noqa: ARG002 — the answer of what is no file
        """Return whether what is read is the file at ``path``, by whatever name: writing there would destroy it."""
        return False

    def __aiter__(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        done: Input bytes that were read.
        total: Of so many; ``None`` when that is unknown.
        counters: What is worth showing beside that.
        view: Makes what a terminal shows in place of the bar: anything that rich prints. Called only where a person
            watches, several times a second and in another thread; returns at once.
    """

    done: int = 0
    total: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    view: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file that a run wrote."""

    path: Path
    stage: str
    chunks: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A request (or pair, or session) that did not end well: which, where, why.

    ``error`` is the exception that a stage raised, where it is at hand; ``--debug`` shows its traceback.
    """

    subject: str
    stage: str
    cause: str
    error: BaseException | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a run ended.

    Attributes:
        outputs: The files written, complete or not.
        failures: What failed; a run with failures exits 1.
        rows: The summary table, label and value, in order.
        details: The same and more for programs (``--json``): JSON-able.
        stopped: Whether a stop signal cut it short.
    """

    outputs: Sequence[OutputFile] = ()
    failures: Sequence[Failure] = ()
    rows: Sequence[tuple[str, str]] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """What ``stagewire run`` asks of a pipeline.

    Attributes:
        input: What to feed it with; ``None`` when the pipeline needs none.
        output: The directory for output files; exists.
        observe: Takes progress; called on the event loop, returns at once.
        input_directory: The directory to feed it with instead, if its kind has the capability `INPUT_DIRECTORY`.
    """

    input: InputStream | None
    output: Path
    observe: Callable[[Progress], None] = lambda _progress: None
    input_directory: Path | None = None


class Pipeline(Protocol):
    """A pipeline that was built and not yet started. It belongs to one event loop and runs once.

    One that sends over its transport may also have ``traffic()``; see `stagewire.spec.probe.HasTraffic`.

    The App opens transport, KV and leases before ``run``, calls ``prepare_shutdown`` and ``shutdown`` at the end (SD-5)
    whatever happened, and closes the backends after them.
    """

    def graph(self) -> str:
        """Return the pipeline as a Mermaid flowchart."""

    async def run(self, job: Job) -> RunReport:
        """Run the job to its end. After ``prepare_shutdown`` it ends soon, with ``stopped`` in the report.

        Cancelled after ``prepare_shutdown``, because the deadline has passed, it may return what there is to report.
        """

    async def prepare_shutdown(self) -> None:
        """Close admission: take no further work, let what is inside end (SD-5)."""

    async def shutdown(self) -> None:
        """Stop every task and thread, and let go of everything (OR-8). Idempotent, also when ``run`` never ran."""


@runtime_checkable
class Telling(Protocol):
    """A pipeline that can say what a stop waits for."""

    def waiting_for(self) -> str | None:
        """Name what has not ended, the stages by their names, in a few words; ``None`` when it is nothing of its."""
