"""What a ChunkAdapter can be told: bounds, retries, pacing, deadlines."""

from __future__ import annotations

from pydantic import ByteSize, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from stagewire import Options

MIB = 1024 * 1024


class ChunkOptions(Options):
    """The options of a `ChunkAdapter`. Times are seconds; bytes are counted as `stagewire.codec.weigh` does."""

    queue_chunks: PositiveInt = Field(100_000, description="Chunks that may wait to be put, of all requests.")
    queue_bytes: ByteSize = Field(ByteSize(256 * MIB), gt=0, description="Bytes that may wait, of all requests.")
    request_chunks: PositiveInt = Field(50_000, description="Chunks that may wait to be put, of one request.")
    request_bytes: ByteSize = Field(
        ByteSize(64 * MIB), gt=0, description="Bytes that may wait, of one request. A larger chunk waits alone."
    )
    attempts: PositiveInt = Field(8, description="Attempts to put a chunk before its request fails.")
    backoff: PositiveFloat = Field(0.005, description="Pause after the first failure; doubles with each further one.")
    backoff_max: PositiveFloat = Field(0.25, description="The longest pause between two attempts.")
    room_poll: PositiveFloat = Field(
        0.0002, description="Pause before a chunk is put again for which the transport had no room; doubles likewise."
    )
    room_timeout: PositiveFloat = Field(
        300.0, description="How long a transport may say that it is full before the request fails."
    )
    cancel_linger: NonNegativeFloat = Field(
        0.1, description="How long a cancel waits for the caller's own final before the adapter ends the request."
    )
    window_chunks: PositiveInt = Field(65_536, description="Unread messages of one request before no more are got.")
    window_bytes: ByteSize = Field(ByteSize(64 * MIB), gt=0, description="Unread bytes of one request, likewise.")
    stall_timeout: PositiveFloat | None = Field(
        None, description="How long a registered request may be silent before it ends in an error; none: for ever."
    )
    poll: PositiveFloat = Field(0.001, description="Pause after a first round in which no message was found.")
    poll_max: PositiveFloat = Field(0.010, description="The longest pause between two rounds while all are silent.")
    idle: PositiveFloat = Field(0.1, description="The longest sleep of a thread that has nothing to do.")

    def pause(self, failures: int, *, full: bool = False) -> float:
        """Return how long to pause after so many failures in a row (1 or more)."""
        first = self.room_poll if full else self.backoff
        return min(self.backoff_max, first * 2.0 ** min(failures - 1, 30))
