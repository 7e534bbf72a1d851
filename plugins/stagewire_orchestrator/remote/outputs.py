"""Outputs and their errors as they travel from a worker to its orchestrator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stagewire import RequestFailed, StageId, describe
from stagewire_orchestrator.outputs import Mark, StageOutput


def pack_output(output: StageOutput) -> list[Any]:
    """Return an output as plain data; an error as the stage and the cause that a person is told."""
    return [
        output.request_id,
        output.data if output.has_data else None,
        output.finished,
        output.has_data,
        output.to,
        _packed(output.error),
        output.mark,
    ]


def unpack_output(parts: Sequence[Any], request: str, stage: StageId) -> StageOutput:
    """Return the output; ``request`` is the id that the client gave, and ``stage`` where it comes from."""
    wire, data, finished, has_data, to, error, mark = parts
    failure = None if error is None else RequestFailed(request, stage if error[0] is None else error[0], error[1])
    return StageOutput(
        wire, data, finished, has_data=has_data, error=failure, to=to, mark=None if mark is None else Mark(*mark)
    )


def _packed(error: BaseException | None) -> list[Any] | None:
    if error is None:
        return None
    if isinstance(error, RequestFailed):
        return [error.stage, error.cause]
    return [None, f"process: {describe(error)}"]
