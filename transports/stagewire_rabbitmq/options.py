"""What YAML may say about the RabbitMQ transport."""

from __future__ import annotations

from typing import Literal

from pydantic import ByteSize, Field, SecretStr, field_validator

from stagewire import Options

MESSAGE_LIMIT = 8 * 1024 * 1024 + 64 * 1024
"""The hard limit of one message: 8 MiB of payload and what goes around it.

Brokers refuse from 16 MiB (4.x) or 128 MiB (3.x) on by closing the channel.
"""


class RabbitMQOptions(Options):
    """Options of ``transport: {use: rabbitmq}``. Sizes are bytes or texts such as ``16MiB``; times are seconds.

    Attributes:
        url: ``amqp://user:password@host:port/vhost``, or ``amqps://`` for TLS. A secret.
        ca_file: Certificates to trust, for ``amqps``; the system's when not given.
        client_certificate: Certificate and key of this client (one PEM file), where the broker asks for one.
        prefix: First part of every queue's name; two deployments on one virtual host have two.
        queue_type: ``classic`` for one node, ``quorum`` for a cluster.
        request_chunks: How many chunks of one request may be unread on one edge; beyond it puts are refused (TR-5).
        request_bytes: The same in bytes; a larger chunk travels alone.
        prefetch_messages: How many messages may be delivered and not acknowledged, per edge.
        prefetch_bytes: The same in bytes.
        coalesce_chunks: How many waiting chunks of one edge travel in one message (TR-9); 1 turns it off.
        coalesce_bytes: Up to which size together.
        gap_timeout: After how long a missing chunk, with later ones of its request there, is an error (TR-3).
        put_timeout: How long a put waits for its confirm before it fails.
        close_timeout: How long closing waits for what is still unconfirmed.
        expires: After how long an unread message is dropped (TR-6).
        queue_expires: After how long an unused queue disappears.
        queue_bytes: How much one queue holds; beyond it puts are refused (TR-5).
        mailbox_messages: How many batches may wait in one mailbox; beyond it a put waits.
        deliveries: How often a batch may be given back before it becomes a dead letter.
        heartbeat: Seconds between signs of life; a peer is given up after two are missed.
        connect_timeout: How long one attempt to connect may take.
    """

    url: SecretStr = SecretStr("amqp://guest:guest@127.0.0.1:5672/%2F")
    ca_file: str | None = None
    client_certificate: str | None = None
    prefix: str = Field("stagewire", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    queue_type: Literal["classic", "quorum"] = "classic"
    request_chunks: int = Field(256, ge=1)
    request_bytes: ByteSize = Field(ByteSize(16 * 1024 * 1024), ge=1)
    prefetch_messages: int = Field(2_000, ge=1, le=65_535)
    prefetch_bytes: ByteSize = Field(ByteSize(16 * 1024 * 1024), ge=1)
    coalesce_chunks: int = Field(128, ge=1, le=10_000)
    coalesce_bytes: ByteSize = Field(ByteSize(256 * 1024), ge=1, le=MESSAGE_LIMIT)
    gap_timeout: float = Field(60, gt=0)
    put_timeout: float = Field(30, gt=0)
    close_timeout: float = Field(10, gt=0)
    expires: float = Field(3_600, gt=0)
    queue_expires: float = Field(86_400, gt=0)
    queue_bytes: ByteSize = Field(ByteSize(1024 * 1024 * 1024), ge=1)
    mailbox_messages: int = Field(10_000, ge=1)
    deliveries: int = Field(5, ge=1)
    heartbeat: int = Field(10, ge=0, le=600)
    connect_timeout: float = Field(10, gt=0)

    @field_validator("url")
    @classmethod
    def _is_amqp(cls, url: SecretStr) -> SecretStr:
        scheme = url.get_secret_value().partition("://")[0]
        if scheme not in ("amqp", "amqps"):
            raise ValueError("must begin with amqp:// or amqps://")
        return url
