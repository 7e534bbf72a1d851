"""What comes out of stages, and what comes out of the orchestrator."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from stagewire import RequestFailed, StageId


class Terminal(StrEnum):
    """How a request ended."""

    END = "END"
    ERROR = "ERROR"
    CANCEL = "CANCEL"


class Mark(NamedTuple):
    """Where an output stands: number ``output``, made of the input with number ``input``, whose first one is ``first``.

    All count from 0. Whoever has the outputs before number n has a use for them only from there on, so an idempotent
    stage may take input ``input`` again and drop what it puts out from ``first`` up to n.
    """

    input: int
    first: int
    output: int


@dataclass(slots=True)
class StageOutput:
    """One output of one stage, as a stage client's ``get_output`` returns it.

    Attributes:
        request_id: The id that was given to ``submit``.
        data: The chunk.
        finished: Whether the stage has ended for this request. Nothing of the request may follow from this stage.
        has_data: ``False`` when there is no chunk: the output only says that the stage ended.
        error: Why the request failed in this stage; the output then counts as finished and its data is ignored.
        to: Behind a routing fork, the one successor that the chunk is for.
        mark: Its place in what the stage put out, where the stage may be resumed by another worker.
    """

    request_id: str
    data: Any = None
    finished: bool = False
    has_data: bool = True
    error: BaseException | None = None
    to: StageId | None = None
    mark: Mark | None = None


@dataclass(slots=True)
class OrchOutput:
    """One output of one request, as the client sees it.

    Exactly one output of each admitted request is ``finished``, whatever happens; it is the last one.

    Attributes:
        request_id: The id that was given to ``add_request``.
        stage_id: The final stage it comes from; for a failure the stage that failed, for a cancel ``None``.
        data: The chunk.
        finished: Whether the request is over.
        error: Why it failed, on an ERROR terminal; or why it was cancelled, where nobody asked for that.
        has_data: ``False`` when there is no chunk, so that a chunk ``None`` can be told from none.
        cancelled: Whether this is a CANCEL terminal.
    """

    request_id: str
    stage_id: StageId | None
    data: Any = None
    finished: bool = False
    error: RequestFailed | None = None
    has_data: bool = True
    cancelled: bool = False

    @property
    def terminal(self) -> Terminal | None:
        """How the request ended, on its last output; else ``None``."""
        if not self.finished:
            return None
        if self.cancelled:
            return Terminal.CANCEL
        return Terminal.END if self.error is None else Terminal.ERROR
