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
        self._many: Callable[[Sequence[Parcel]], Sequence[Exception | None]] | None
        self._many = getattr(transport, "put_many", None)
        self._cleanup: Callable[[str], object] | None = getattr(transport, "cleanup", None)
        self._set_wakeup: Callable[[Callable[[], None]], object] | None = getattr(transport, "set_wakeup", None)

    @property
    def coalesces(self) -> bool:
        """Whether several chunks can be put in one go (TR-9)."""
        return self._many is not None

    def put(self, parcels: Sequence[Parcel]) -> list[Exception | None]:
        """Put in order; returns one result for each, and never raises an `Exception`."""
        try:
            if self._many is None:
                return [self._put(*parcel) for parcel in parcels]
            results = list(self._many(parcels))
        except Exception as error:  # noqa: BLE001 — a foreign transport may raise anything
            return [error] * len(parcels)
        missing = len(parcels) - len(results)
        return results + [LookupError("put_many returned fewer results than it was given items")] * missing

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        """Take one chunk; raises what the transport raises."""
        message: ChunkMessage | None = self._transport.get(key)
        return message

    def cleanup(self, request: str) -> None:
        """Drop what this side of the transport still holds, where it can; raises what the transport raises."""
        if self._cleanup is not None:
            self._cleanup(request)

    def call_when_news(self, hint: Callable[[], None]) -> None:
        """Ask the transport for hints, where it gives them (CH-11)."""
        if self._set_wakeup is not None:
            self._set_wakeup(hint)

    def _put(self, key: ChunkKey, message: ChunkMessage) -> Exception | None:
        try:
            self._transport.put(key, message)
        except Exception as error:  # noqa: BLE001 — a foreign transport may raise anything
            return error
        return None
