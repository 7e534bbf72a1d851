"""What the stages here have in common: nothing to open, nothing to close, a logger, and input that is text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagewire import StageContext

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class QuietStage:
    """A stage without resources. A subclass adds ``process``; ``log`` is there from ``open`` on."""

    log: FilteringBoundLogger

    async def open(self, context: StageContext) -> None:
        """Keep the stage's logger."""
        self.log = context.log

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""


def text_of(chunk: object) -> str:
    """Return a chunk that must be text. Raises `TypeError` with the remedy when it is anything else."""
    if not isinstance(chunk, str):
        raise TypeError(f"this stage takes str, not {type(chunk).__name__}: put text.sentences in front of it")
    return chunk
