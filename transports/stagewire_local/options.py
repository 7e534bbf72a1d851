"""What `transport: {use: local}` takes."""

from __future__ import annotations

from pydantic import ByteSize, Field, PositiveFloat, PositiveInt

from stagewire import Options

MIB = 1024 * 1024


class LocalOptions(Options):
    """Bounds of the in-process transport. Bytes are counted as `stagewire.codec.weigh` does."""

    request_chunks: PositiveInt = Field(256, description="Unread chunks that one request may have on one edge.")
    request_bytes: ByteSize = Field(
        ByteSize(16 * MIB),
        gt=0,
        description="Unread bytes that one request may have on one edge. A larger chunk travels alone.",
    )
    total_bytes: ByteSize = Field(
        ByteSize(256 * MIB),
        gt=0,
        description="Unread bytes of all requests. As it fills up each may hold less; one that holds none may put one.",
    )
    requests: PositiveInt = Field(65_536, description="Requests that may have unread chunks at the same time.")
    expires: PositiveFloat = Field(600.0, description="Seconds after which chunks that nobody asked for are dropped.")
    remembered: PositiveInt = Field(1_024, description="Ended requests remembered in order to know late repeats.")
    mailbox_messages: PositiveInt = Field(1_024, description="Messages that one mailbox holds, those in hand included.")
    mailbox_bytes: ByteSize = Field(ByteSize(256 * MIB), gt=0, description="Bytes that one mailbox holds.")
    put_timeout: PositiveFloat = Field(30.0, description="Seconds that put_batch waits for room unless told otherwise.")
    redeliveries: int = Field(
        5, ge=0, description="How often a message that failed is delivered again before it is dead."
    )
