"""Real speech, by the library that espeakng-loader brings."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from array import array
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from stagewire import Stage, StageContext, StageRequest
from stagewire_examples import Phonemes, Synthesize, SynthesizeOptions, VoiceOptions
from stagewire_examples.espeak import MAX_TEXT, SpeechError, load

if TYPE_CHECKING:
    from tests.unit.examples.conftest import Drive

TEXT = ["Hello, world.", "How are you?", "…"]

missing = importlib.util.find_spec("espeakng_loader") is None
pytestmark = pytest.mark.skipif(
    missing and os.environ.get("CI") != "true", reason="needs eSpeak NG: pip install 'stagewire[speech]'"
)


def samples(chunks: list[bytes]) -> array[int]:
    return array("h", b"".join(chunks))


def test_sentences_become_phonemes_one_text_for_each(drive: Drive) -> None:
    assert drive(Phonemes(VoiceOptions(voice="en-gb")), TEXT) == ["[[h@l'oU]], [[w'3:ld]].", "[[h'aU A@ ju]]?", ""]


def test_phonemes_follow_the_language(drive: Drive) -> None:
    english, german = (drive(Phonemes(VoiceOptions(voice=voice)), ["Wasser"]) for voice in ("en-gb", "de"))
    assert german == ["[[v'as3]]."]
    assert english != german


def test_phonemes_are_spoken_at_the_sample_rate_of_the_wav_file(drive: Drive) -> None:
    phonemes = drive(Phonemes(VoiceOptions()), TEXT)
    chunks = drive(Synthesize(SynthesizeOptions()), phonemes)
    sound = samples(chunks)
    assert load().sample_rate == 22_050
    assert 1.0 < len(sound) / 22_050 < 4.0
    assert max(map(abs, sound)) > 8_000
    assert all(0 < len(chunk) <= 65_536 for chunk in chunks)


def test_speaking_phonemes_sounds_as_long_as_speaking_the_text(drive: Drive) -> None:
    sentence = ["The quick brown fox jumps over the lazy dog, and then it sleeps."]
    phonemes = drive(Phonemes(VoiceOptions()), sentence)
    by_phonemes = len(samples(drive(Synthesize(SynthesizeOptions()), phonemes)))
    by_text = len(samples(drive(Synthesize(SynthesizeOptions(input="text")), sentence)))
    assert by_phonemes == pytest.approx(by_text, rel=0.1)


def test_a_faster_voice_takes_less_time(drive: Drive) -> None:
    slow, fast = (len(samples(drive(Synthesize(SynthesizeOptions(wpm=wpm, input="text")), TEXT))) for wpm in (100, 400))
    assert fast < slow / 2


def test_brackets_in_a_text_are_not_taken_for_phonemes(drive: Drive) -> None:
    text, phonemes = (drive(Synthesize(SynthesizeOptions(input=kind)), ["[[h@l'oU]]"]) for kind in ("text", "phonemes"))
    assert len(samples(text)) > 1.5 * len(samples(phonemes))


@pytest.mark.parametrize("text", ["", " ", "😀", "a\0b", "\ufffd", "[[", "你好。"])
def test_any_text_can_be_spoken(drive: Drive, text: str) -> None:
    phonemes = drive(Phonemes(VoiceOptions()), [text])
    assert len(phonemes) == 1
    drive(Synthesize(SynthesizeOptions()), phonemes)


@pytest.mark.parametrize("voice", ["en-us", "EN", "gmw/en", "English (America)"])
def test_a_voice_has_several_names(voice: str) -> None:
    assert load().voice(voice).startswith("gmw/en")


@pytest.mark.parametrize("kind", [Phonemes, Synthesize])
def test_a_missing_voice_is_named_when_the_stage_opens(
    kind: type[Phonemes | Synthesize], context: StageContext
) -> None:
    stage: Stage = kind(SynthesizeOptions(voice="en-gp"))
    with pytest.raises(SpeechError, match=r"no voice 'en-gp': did you mean .*en-gb"):
        asyncio.run(stage.open(context))


def test_a_text_without_sentences_is_refused_with_the_remedy(drive: Drive) -> None:
    with pytest.raises(SpeechError, match=r"20001 characters.*text\.sentences"):
        drive(Synthesize(SynthesizeOptions()), ["a" * (MAX_TEXT + 1)])


def test_voices_side_by_side_do_not_mix(context: StageContext) -> None:
    async def speak(stage: Stage) -> int:
        return len(b"".join([chunk async for chunk in stage.process(StageRequest("r1", chunks=_each(["2024"] * 5)))]))

    async def main() -> None:
        english, french = (Synthesize(SynthesizeOptions(voice=voice, input="text")) for voice in ("en-gb", "fr"))
        for stage in (english, french):
            await stage.open(context)
        alone = await speak(english), await speak(french)
        together = await asyncio.gather(speak(english), speak(french))
        for stage in (english, french):
            await stage.close()
        assert alone[0] > 1.5 * alone[1]  # two thousand and twenty-four: deux mille vingt-quatre
        assert together == pytest.approx(alone, rel=0.02)

    asyncio.run(main())


def test_threads_that_load_at_once_get_one_library() -> None:
    script = """
import threading
from concurrent.futures import ThreadPoolExecutor
from stagewire_examples.espeak import load

barrier = threading.Barrier(8)

def open_it(_):
    barrier.wait()
    return load()

with ThreadPoolExecutor(8) as pool:
    loaded = list(pool.map(open_it, range(8)))
print(len(set(map(id, loaded))), len(loaded[0].phonemes("hello", voice=loaded[0].voice("en"))))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["1", "1"], "")


async def _each(texts: list[str]) -> AsyncIterator[str]:
    for text in texts:
        yield text
