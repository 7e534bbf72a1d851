"""A WAV file that can be played at any moment while it grows: 16-bit mono PCM, low byte first."""

from __future__ import annotations

import struct
from typing import BinaryIO

from stagewire import StagewireError

HEADER_BYTES = 44
SAMPLE_BYTES = 2
LIMIT = 0xFFFF_FFFF - HEADER_BYTES - 1
"""The most bytes of sound that a WAV file can say it has."""


class WavFull(StagewireError):
    """The sound does not fit into one WAV file. What fits was written, and can be played."""


class WavWriter:
    """Appends sound, then says in the header how much there is: it never claims what is not there yet.

    Args:
        file: Open for writing and seekable.
        rate: Samples a second.
        limit: The most bytes of sound that the file may hold.
    """

    def __init__(self, file: BinaryIO, rate: int, limit: int = LIMIT) -> None:
        self._file = file
        self._rate = rate
        self._limit = limit - limit % SAMPLE_BYTES
        self._size = 0
        self._odd = b""
        self._write_header()

    def write(self, sound: bytes) -> None:
        """Append sound; half a sample at its end waits for its other half.

        Raises:
            WavFull: It does not fit; as much as fits was written.
        """
        sound = self._odd + sound
        room = self._limit - self._size
        usable = min(len(sound) - len(sound) % SAMPLE_BYTES, room)
        rest = len(sound) - usable
        self._odd = sound[usable:] if rest < SAMPLE_BYTES else b""
        self._file.seek(HEADER_BYTES + self._size)
        self._file.write(memoryview(sound)[:usable])
        self._file.flush()
        self._size += usable
        self._write_header()
        if rest >= SAMPLE_BYTES:
            raise WavFull(
                f"the sound is longer than a WAV file can hold ({self._limit:,} bytes): it was cut there;"
                " use format bytes, a lower rate, or a shorter input"
            )

    def finish(self) -> None:
        """Raise `ValueError` when half a sample is left over, which means that the chunks were no 16-bit sound."""
        if self._odd:
            raise ValueError("the sound ends within a sample: a wav file takes 16-bit samples, two bytes each")

    def _write_header(self) -> None:
        rate, size = self._rate, self._size
        riff = struct.pack("<4sI4s", b"RIFF", HEADER_BYTES - 8 + size, b"WAVE")
        form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate * SAMPLE_BYTES, SAMPLE_BYTES, 8 * SAMPLE_BYTES)
        self._file.seek(0)
        self._file.write(riff + form + struct.pack("<4sI", b"data", size))
        self._file.flush()
