"""``speech.phonemes`` and ``speech.synthesize``: sentences to phonemes to speech, by eSpeak NG."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

from pydantic import Field

from stagewire import Options, StageContext, StageRequest
from stagewire_examples.base import text_of

if TYPE_CHECKING:
    from stagewire_examples.espeak import Espeak

P = ParamSpec("P")
T = TypeVar("T")

SAMPLE_RATE = 22_050
"""Samples a second of what eSpeak NG speaks."""

_BLOCK_BYTES = 65_536
_CLOSING = "\"'”’»)]"  # noqa: RUF001 — typographic quotes are meant
_FINAL_STOPS = "?!"


class VoiceOptions(Options):
    """Options of ``speech.phonemes``."""

    voice: str = Field("en-gb", min_length=1, description="a language of eSpeak NG such as en-us or de, or a voice")


class SynthesizeOptions(VoiceOptions):
    """Options of ``speech.synthesize``."""

    wpm: int = Field(175, ge=80, le=450, description="words a minute")
    input: Literal["phonemes", "text"] = Field("phonemes", description="what the chunks are")

    @property
    def rate(self) -> int:
        """Samples a second: those of eSpeak NG, whatever the voice."""
        return SAMPLE_RATE


class _SpeechStage:
    """A stage with a thread of its own for eSpeak NG, which blocks and serves one caller at a time anyway."""

    _espeak: Espeak

    def __init__(self, voice: str) -> None:
        self._voice = voice
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="espeak")

    async def open(self, _context: StageContext) -> None:
        """Load the library and look the voice up. Raises `SpeechError` when either cannot be had."""
        try:
            self._espeak = await self._in_thread(_load)
            self._voice = self._espeak.voice(self._voice)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Let the thread end; waits for the sentence that it is speaking, which takes milliseconds."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _in_thread(self, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(call, *args, **options))


def _load() -> Espeak:
    from stagewire_examples.espeak import load  # noqa: PLC0415 — ctypes and the C library, only where they are used

    return load()


class Phonemes(_SpeechStage):
    """Takes sentences and yields one text for each: its clauses in eSpeak's notation, ``[[h@l'oU]], [[w'3:ld]].``"""

    def __init__(self, options: VoiceOptions) -> None:
        super().__init__(options.voice)

    async def process(self, request: StageRequest) -> AsyncIterator[str]:
        """Yield the phonemes of each sentence."""
        async for sentence in request.chunks:
            yield await self._in_thread(self._spell, text_of(sentence))

    def _spell(self, sentence: str) -> str:
        clauses = self._espeak.phonemes(sentence, voice=self._voice)
        if not clauses:
            return ""
        last = sentence.rstrip(_CLOSING)[-1:]
        return ", ".join(f"[[{clause}]]" for clause in clauses) + (last if last in _FINAL_STOPS else ".")


class Synthesize(_SpeechStage):
    """Takes phonemes (or sentences) and yields blocks of 16-bit little-endian mono PCM at 22,050 samples a second."""

    def __init__(self, options: SynthesizeOptions) -> None:
        super().__init__(options.voice)
        self._options = options

    async def process(self, request: StageRequest) -> AsyncIterator[bytes]:
        """Yield the sound of each chunk."""
        async for text in request.chunks:
            sound = await self._in_thread(self._speak, text_of(text))
            for start in range(0, len(sound), _BLOCK_BYTES):
                yield sound[start : start + _BLOCK_BYTES]

    def _speak(self, text: str) -> bytes:
        if not text.strip():
            return b""
        phonemes = self._options.input == "phonemes"
        return self._espeak.speak(text, voice=self._voice, wpm=self._options.wpm, phonemes=phonemes)
