"""The captioner: a service that takes its time, and then says what it sees in an image."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from stagewire_examples.captions.facts import Facts, NoImage, facts_of
from stagewire_examples.captions.options import CaptionerOptions


class Reply(BaseModel):
    """What the captioner replies: facts, or an error and whether it makes sense to ask again."""

    model_config = ConfigDict(frozen=True)

    facts: Facts | None = None
    error: str | None = None
    again: bool = False


@dataclass(slots=True)
class Served:
    """What became of the requests that were taken."""

    answered: int = 0
    late: int = 0
    refused: int = 0
    unreadable: int = 0


class Captioner:
    """Answers requests; many at once. Belongs to one event loop.

    Args:
        options: How long it takes, and how often it fails its callers.
    """

    def __init__(self, options: CaptionerOptions) -> None:
        self.served = Served()
        self._options = options
        self._dice = random.Random(options.seed)  # noqa: S311 — chance, not secrets

    async def answer(self, image: bytes) -> Reply:
        """Say what is seen in an encoded image."""
        options, lot = self._options, self._dice.random()
        await asyncio.sleep(options.delay)
        if lot < options.fail:
            self.served.refused += 1
            return Reply(error="the captioner is overloaded", again=True)
        late = lot < options.fail + options.late
        if late:
            await asyncio.sleep(options.late_by)
        try:
            facts = await asyncio.to_thread(facts_of, image)
        except NoImage as error:
            self.served.unreadable += 1
            return Reply(error=str(error))
        self.served.late += late
        self.served.answered += 1
        return Reply(facts=facts)
