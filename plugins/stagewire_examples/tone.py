"""``morse.tone``: Morse symbols to sound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

from pydantic import Field, model_validator

from stagewire import Options, StageRequest
from stagewire_examples.base import QuietStage
from stagewire_examples.keyer import SAMPLE_BYTES, Keyer, blocks, dit_seconds

_LEAST_CYCLES = 3
"""A dit with fewer waves than this is a click rather than a tone."""


class ToneOptions(Options):
    """Options of ``morse.tone``."""

    rate: int = Field(8_000, ge=4_000, le=192_000, description="samples a second")
    wpm: float = Field(20, ge=1, le=100, description="words a minute, the word being PARIS")
    frequency: float = Field(600, gt=0, description="of the tone, in hertz")
    level: float = Field(0.8, gt=0, le=1, description="of the loudest sample, where 1 is full scale")
    block: int = Field(32_768, ge=256, le=1_048_576, description="samples of a chunk, at most")

    @model_validator(mode="after")
    def _audible(self) -> Self:
        if self.frequency > 0.45 * self.rate:
            raise ValueError(f"frequency {self.frequency:g} needs a rate of {self.frequency / 0.45:.0f} or more")
        if self.frequency * dit_seconds(self.wpm) < _LEAST_CYCLES:
            lowest = _LEAST_CYCLES / dit_seconds(self.wpm)
            raise ValueError(f"at {self.wpm:g} words a minute the frequency must be {float(lowest):.0f} or more")
        return self


class MorseTone(QuietStage):
    """Takes Morse symbols and yields blocks of 16-bit little-endian mono PCM at ``rate`` samples a second.

    The texts are a word gap apart, however many blocks they become. What was keyed so far is yielded as soon as a text
    is at its end, so sound never waits for the next sentence.
    """

    def __init__(self, options: ToneOptions) -> None:
        self._options = options

    async def process(self, request: StageRequest) -> AsyncIterator[bytes]:
        """Yield the sound of each text of symbols, in blocks."""
        options = self._options
        keyer = Keyer(rate=options.rate, wpm=options.wpm, frequency=options.frequency, level=options.level)
        async for symbols in request.chunks:
            for block in blocks(keyer.key(symbols), options.block * SAMPLE_BYTES):
                yield block
