"""What a stage sees of a request: its `StageRequest`, made from the submission."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from stagewire import StageRequest
from stagewire_orchestrator.clients import Submission

_WHOLE = (str, bytes, bytearray, memoryview, list, tuple, Mapping)
"""Prompts that are one chunk, although some of them can be iterated."""


def make_request(submission: Submission, chunks: AsyncIterator[Any] | None) -> StageRequest:
    """Return the request; ``chunks`` are those that come over chunk edges, ``None`` without such edges."""
    identity, prompt = submission.request_id, submission.prompt
    if chunks is not None:
        return StageRequest(identity, prompt, chunks)
    if submission.collected is None:
        return StageRequest(identity, prompt, prompt_chunks(prompt))
    inputs = _flat(submission)
    return StageRequest(identity, prompt, _each(inputs), inputs, submission.inputs)


def streams(prompt: Any) -> bool:
    """Return whether the prompt is a stream of chunks, which can be iterated once and only here."""
    return not isinstance(prompt, _WHOLE) and isinstance(prompt, AsyncIterable | Iterable)


async def prompt_chunks(prompt: Any) -> AsyncIterator[Any]:
    """Yield the prompt's own chunks when it is an (async) iterable of such, else itself alone; of `None` nothing."""
    if not streams(prompt):
        if prompt is not None:
            yield prompt
    elif isinstance(prompt, AsyncIterable):
        async for chunk in prompt:
            yield chunk
    else:
        for chunk in prompt:
            yield chunk


def _flat(submission: Submission) -> Sequence[Any]:
    collected = submission.collected
    if isinstance(collected, Mapping):
        return [chunk for share in collected.values() for chunk in share]
    return list(collected)


async def _each(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item
