"""The key-value contract: large payloads live here while a small reference to them travels."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from stagewire.spec.lease import Lease

MAX_VALUE = 64 * 1024 * 1024
"""The largest value that every backend takes, in bytes."""

Buffer = bytes | bytearray | memoryview


class Holder(Protocol):
    """Keeps a value's bytes valid until it is released, also after the key was deleted."""

    @property
    def data(self) -> memoryview:
        """The bytes, read-only, without a copy where the backend can. Raises `Closed` after release."""

    def release(self) -> None:
        """Let go of the bytes. Idempotent. Slices of ``data`` that are still referenced stay valid (SD-7)."""

    def __len__(self) -> int: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class KVBackend(Protocol):
    """An asyncio key-value store for payloads. A value is visible only when all of it is there.

    Every method may be cancelled; a cancelled ``put`` may or may not have taken effect.
    """

    @property
    def reference_threshold(self) -> int:
        """From how many bytes on a reference to this store beats sending the payload inline."""

    async def open(self) -> None:
        """Connect. Raises `KVError` naming the cause and the remedy."""

    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        """Store a copy of ``value`` (at most ``MAX_VALUE`` bytes) under ``key``, replacing what was there.

        With a lease the key vanishes when the lease ends.

        Raises:
            LeaseLost: The lease has ended, or a later generation of it exists (LS-7); nothing was stored.
            KVError: The value is too large, or the store is full, read-only or out of reach.
        """

    async def get(self, key: str) -> Holder | None:
        """Return a holder of the value, or ``None`` when there is none."""

    async def delete(self, key: str) -> bool:
        """Remove the key; returns whether there was one. Holders stay valid."""

    async def exists(self, key: str) -> bool:
        """Return whether there is a value under the key."""

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with ``prefix``; for operators and tests, not for the data path."""

    async def close(self) -> None:
        """Let go of everything. Idempotent."""
