"""A transport as the adapter sees it: two methods, and three more that it may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from stagewire import ChunkKey, ChunkMessage

Parcel = tuple[ChunkKey, ChunkMessage]


class MinimalTransport(Protocol):
    """The least that a `ChunkAdapter` needs of a transport. Keys are strings too: ``"{request}_{stage}_{chunk}"``."""

    def put(self, key: Any, message: Any, /) -> object:
        """Hand one chunk over. See `stagewire.ChunkTransport.put`."""

    def get(self, key: Any, /) -> Any:
        """Take one chunk, or return ``None``. See `stagewire.ChunkTransport.get`."""


class Port:
    """Calls the transport. No method takes a lock or catches more than it says."""

    def __init__(self, transport: MinimalTransport) -> None:
        self._transport = transport
        self._put_many: Callable[[Sequence[Parcel]], Sequence[Exception | None]] | None
        self._put_many = getattr(transport, "put_many", None)
        self._get_many: Callable[[ChunkKey, int], Sequence[ChunkMessage]] | None = getattr(transport, "get_many", None)
        self._cleanup: Callable[[str], object] | None = getattr(transport, "cleanup", None)
        self._set_wakeup: Callable[[Callable[..., None]], object] | None = getattr(transport, "set_wakeup", None)

    @property
    def coalesces(self) -> bool:
        """Whether several chunks can be put in one go (TR-9)."""
        return self._put_many is not None

    @property
    def hands_out_runs(self) -> bool:
        """Whether `get` takes all that has arrived of a request, up to its limit."""
        return self._get_many is not None

    @property
    def keeps_runs(self) -> bool:
        """Whether the transport drops what comes after the final of a run, as `stagewire.ChunkTransport` says."""
        return self._cleanup is not None

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Put one chunk; raises what the transport raises."""
        self._transport.put(key, message)

    def put_many(self, parcels: Sequence[Parcel]) -> Sequence[Exception | None]:
        """Put several in order; returns one result for each, and never raises an `Exception`."""
        assert self._put_many is not None, "ask `coalesces` first"
        try:
            results = self._put_many(parcels)
            missing = len(parcels) - len(results)
        except Exception as error:  # noqa: BLE001 — a foreign transport may raise anything
            return [error] * len(parcels)
        if missing:
            return [LookupError(f"put_many gave {len(results)} results for {len(parcels)} chunks")] * len(parcels)
        return results

    def get(self, key: ChunkKey, limit: int) -> Sequence[ChunkMessage]:
        """Take the chunk with this key and, where the transport can, up to ``limit`` in all with those that follow it.

        Raises what the transport raises.
        """
        if self._get_many is not None:
            return self._get_many(key, limit)
        message: ChunkMessage | None = self._transport.get(key)
        return () if message is None else (message,)

    def cleanup(self, request: str) -> None:
        """Drop what this side of the transport still holds, where it can; raises what the transport raises."""
        if self._cleanup is not None:
            self._cleanup(request)

    def call_when_news(self, hint: Callable[..., None]) -> None:
        """Ask the transport for hints, where it gives them (CH-11)."""
        if self._set_wakeup is not None:
            self._set_wakeup(hint)
