"""Final outputs as files: formats, WAV that can be played at any moment, and what a file cannot take."""

from __future__ import annotations

import array
import errno
import io
import itertools
import struct
import wave
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from stagewire import Options, StageRequest
from stagewire_orchestrator import sinks
from stagewire_orchestrator.formats import encode_bytes, encode_json, encode_text, format_of, guess
from stagewire_orchestrator.wav import HEADER_BYTES, LIMIT, WavFull, WavWriter


@pytest.mark.parametrize(
    ("chunk", "line"),
    [
        ("a", b"a\n"),
        ("", b"\n"),
        ("a\n", b"a\n"),
        ("a\nb\r\nc", b"a b c\n"),
        ("a\u2028b\vc", b"a b c\n"),
        ("é😀", "é😀\n".encode()),
    ],
)
def test_text_is_one_line_a_chunk(chunk: str, line: bytes) -> None:
    assert encode_text(chunk) == line


def test_json_is_one_line_a_chunk() -> None:
    assert encode_json({"a": ["é", None, (1, 2.5)]}) == '{"a":["é",null,[1,2.5]]}\n'.encode()
    assert encode_json("two\nlines") == b'"two\\nlines"\n'


@pytest.mark.parametrize("chunk", [b"\x01\x00", bytearray(b"\x01\x00"), memoryview(b"\x01\x00"), array.array("h", [1])])
def test_buffers_of_any_kind_are_bytes(chunk: Any) -> None:
    assert encode_bytes(chunk) == b"\x01\x00"
    assert guess(chunk) == "bytes"


@pytest.mark.parametrize(("encode", "chunk"), [(encode_text, b"x"), (encode_bytes, 3), (encode_json, object())])
def test_a_chunk_that_a_format_cannot_say_is_refused(encode: Callable[[Any], bytes], chunk: Any) -> None:
    with pytest.raises(TypeError):
        encode(chunk)


def test_the_format_follows_the_ending_or_the_first_chunk() -> None:
    endings = {"a.txt": "text", "A.JSONL": "jsonl", "b.wav": "wav", "c.pcm": "bytes", "d": None}
    assert {name: format_of(name, "auto") for name in endings} == endings
    assert format_of("a.txt", "bytes") == "bytes"
    assert [guess("x"), guess(b"x"), guess({"a": 1}), guess(3)] == ["text", "bytes", "jsonl", "jsonl"]


def frames(data: bytes) -> bytes:
    with wave.open(io.BytesIO(data)) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, 8_000)
        played: bytes = sound.readframes(sound.getnframes())
        return played


def test_wav_can_be_played_after_every_write() -> None:
    file, whole = io.BytesIO(), b""
    writer = WavWriter(file, 8_000)
    assert frames(file.getvalue()) == b""
    for piece in (b"\x01\x00", b"", b"\x02\x00\x03", b"\x00", b"\x04\x00" * 1_000):
        writer.write(piece)
        whole += piece
        assert frames(file.getvalue()) == whole[: len(whole) - len(whole) % 2]
    writer.finish()
    assert len(file.getvalue()) == HEADER_BYTES + len(whole)


def test_wav_never_claims_sound_that_is_not_there_yet() -> None:
    class Torn(io.BytesIO):
        """Ends in the middle of a write, as a killed process does."""

        def write(self, data: Any, /) -> int:
            if len(data) > 1_000:
                super().write(bytes(data)[:500])
                raise OSError("killed")
            return super().write(data)

    file = Torn()
    writer = WavWriter(file, 8_000)
    writer.write(b"\x01\x00")
    with pytest.raises(OSError, match="killed"):
        writer.write(b"\x02\x00" * 1_000)
    assert frames(file.getvalue()) == b"\x01\x00"


def test_wav_that_ends_within_a_sample_was_no_sound() -> None:
    writer = WavWriter(io.BytesIO(), 8_000)
    writer.write(b"\x01\x00\x02")
    with pytest.raises(ValueError, match="within a sample"):
        writer.finish()


@pytest.mark.parametrize("pieces", [[10, 1], [11], [6, 6], [100], [10], [9, 1]])
def test_wav_takes_what_fits_and_names_the_limit(pieces: list[int]) -> None:
    file = io.BytesIO()
    writer = WavWriter(file, 8_000, limit=11)  # an odd limit holds five samples
    sound = iter(range(200))
    refused = []
    for size in pieces:
        try:
            writer.write(bytes(itertools.islice(sound, size)))
        except WavFull as error:
            refused.append(str(error))
    assert frames(file.getvalue()) == bytes(range(10))
    assert ["10 bytes" in text for text in refused] == [True] * (sum(pieces) >= 12)


def test_the_limit_is_what_the_header_can_say() -> None:
    assert struct.pack("<I", HEADER_BYTES - 8 + LIMIT)
    with pytest.raises(struct.error):
        struct.pack("<I", HEADER_BYTES - 8 + LIMIT + 16)


SOUND = """
stages: {tone: {use: tone}}
outputs: {tone: {file: tone.wav, rate: 8000}}
"""


def test_sound_beyond_the_limit_ends_the_run_by_name_and_the_file_can_be_played(lab: Any) -> None:
    closed: list[bool] = []

    async def tone(_request: StageRequest) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"\x01\x00" * 1_000
        finally:
            closed.append(True)

    lab.wav_limit = 100_000
    lab.stage("tone", tone)
    report = lab.run(SOUND)
    (failure,) = report.failures
    assert failure.stage == "tone"
    assert "tone.wav: the sound is longer than a WAV file can hold (100,000 bytes)" in failure.cause
    assert len(frames((lab.out / "tone.wav").read_bytes())) == 100_000
    assert closed == [True]
    assert report.outputs[0].bytes == 100_000 + HEADER_BYTES


def test_half_a_sample_at_the_end_fails_the_run(lab: Any) -> None:
    async def tone(_request: StageRequest) -> AsyncIterator[bytes]:
        yield b"\x01\x00\x02"

    lab.stage("tone", tone)
    (failure,) = lab.run(SOUND).failures
    assert "within a sample" in failure.cause


@pytest.mark.parametrize(("chunk", "name"), [(3, "x.txt"), (3, "x.pcm"), (object(), "x.jsonl")])
def test_a_chunk_of_the_wrong_type_fails_the_run_by_file_and_stage(lab: Any, chunk: Any, name: str) -> None:
    async def odd(_request: StageRequest) -> AsyncIterator[Any]:
        yield chunk
        while True:
            yield chunk

    lab.stage("odd", odd)
    (failure,) = lab.run(f"stages: {{odd: {{use: odd}}}}\noutputs: {{odd: {{file: {name}}}}}").failures
    assert failure.stage == "odd"
    assert failure.cause.startswith(f"output {lab.out / name}: ")
    assert type(chunk).__name__ in failure.cause


def test_a_file_that_cannot_be_made_fails_the_run_before_it_begins(lab: Any) -> None:
    (lab.out / "tone.wav").mkdir()
    lab.stage("tone", lambda _request: None)
    (failure,) = lab.run(SOUND).failures
    assert failure.cause == (
        f"output {lab.out / 'tone.wav'}: it cannot be written: Is a directory;"
        " remove the directory, or choose another file name"
    )


TWO = """
stages: {lines: {use: lines}, up: {use: up}}
edges: [{from: lines, to: up, kind: chunk}]
outputs: {lines: {file: lines.txt}, up: {file: up.txt}}
"""


@pytest.mark.parametrize("count", [1, 100_000], ids=["at the end", "on the way"])
def test_a_full_disk_fails_the_run_once_by_stage_and_file_and_the_other_file_is_whole(lab: Any, count: int) -> None:
    (lab.out / "lines.txt").symlink_to("/dev/full")
    report = lab.run(TWO, "x\n" * count)
    (failure,) = report.failures
    assert failure.stage == "lines"
    assert failure.cause == (
        f"output {lab.out / 'lines.txt'}: it cannot be written: No space left on device;"
        " make room, or choose another --output directory"
    )
    up = lab.read("up.txt")
    assert up == "X\n" * (len(up) // 2)  # closed, after the other one could not be
    assert [file.bytes for file in report.outputs] == [0, len(up)]


def test_a_close_that_fails_is_told_of_each_file_and_no_file_stays_open(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any) -> None:
        real(self)
        raise OSError(errno.EIO, "Input/output error")

    real = sinks.Sink.close
    monkeypatch.setattr(sinks.Sink, "close", broken)
    report = lab.run(TWO, "x")
    assert [failure.stage for failure in report.failures] == ["lines", "up"]
    assert all("Input/output error" in failure.cause for failure in report.failures)
    assert (lab.read("lines.txt"), lab.read("up.txt")) == ("x\n", "X\n")


def test_a_directory_that_may_not_be_written_to_is_said_with_a_remedy(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(sinks.Sink, "open", refuse)
    report = lab.run(TWO, "x")
    (failure,) = report.failures
    assert failure.cause == (
        f"output {lab.out / 'lines.txt'}: it cannot be written: Permission denied;"
        " choose another --output directory, or let this one be written to"
    )
    assert report.outputs == []
    assert dict(report.rows)["result"] == "failed"


def test_a_wav_file_of_texts_fails_by_stage_and_file_and_says_what_to_do(lab: Any) -> None:
    (failure,) = lab.run("stages: {lines: {use: lines}}\noutputs: {lines: {file: x.wav, rate: 8000}}", "a\nb").failures
    assert failure.stage == "lines"
    assert "x.wav: a wav file takes buffers of 16-bit samples, and the chunk is str: choose" in failure.cause


def test_a_chunk_without_an_end_fails_the_run_by_stage_and_file(lab: Any) -> None:
    async def round_about(_request: StageRequest) -> AsyncIterator[Any]:
        chunk: list[Any] = []
        chunk.append(chunk)
        yield chunk

    lab.stage("round", round_about)
    (failure,) = lab.run("stages: {round: {use: round}}\noutputs: {round: {file: x.jsonl}}").failures
    assert failure.stage == "round"


class Rated(Options):
    rate: int = 8_000


class Fixed(Options):
    @property
    def rate(self) -> int:
        return 22_050


@pytest.mark.parametrize(("options", "own"), [(Rated, 8_000), (Fixed, 22_050)])
def test_a_rate_that_is_not_the_stages_own_is_a_fault_of_the_file(lab: Any, options: type[Options], own: int) -> None:
    lab.stage("tone", lambda _request, _options: None, options=options)
    assert lab.problems(SOUND.replace("8000", "44100")) == [
        f":6:40: outputs.tone.rate: the stage 'tone' makes {own} samples a second: give both the same rate"
    ]
    assert lab.problems(SOUND.replace("8000", str(own))) == []


def test_a_file_may_lie_in_a_folder_of_the_output_directory(lab: Any) -> None:
    lab.run("stages: {lines: {use: lines}}\noutputs: {lines: {file: sub/lines}}", "a\nb")
    assert lab.read("sub/lines") == "a\nb\n"


def test_an_earlier_file_is_replaced(lab: Any, tmp_path: Path) -> None:
    assert tmp_path in lab.out.parents
    (lab.out / "lines").write_text("much longer than what comes")
    lab.run("stages: {lines: {use: lines}}\noutputs: {lines: {file: lines}}", "a")
    assert lab.read("lines") == "a\n"


def test_a_final_stage_needs_no_file(lab: Any) -> None:
    report = lab.run("stages: {lines: {use: lines, final: true}}", "a\nb")
    assert report.details["chunks"] == {"lines": 2}
    assert not report.outputs
