"""A holder of bytes that stay where they are, for backends whose memory lives as long as anything refers to it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from stagewire.errors import Closed
from stagewire.spec.kv import Buffer


class ViewHolder:
    """A `Holder` that is a read-only view of a buffer; nothing is copied, and the buffer must not change.

    The buffer lives as long as the view or a slice of it, whatever happens to the key. From any thread.
    """

    def __init__(self, value: Buffer) -> None:
        self._view: memoryview | None = memoryview(value).toreadonly()

    @property
    def data(self) -> memoryview:
        """The bytes, read-only. Raises `Closed` after release."""
        if self._view is None:
            raise Closed("the holder was released: take its data before, or get the value again")
        return self._view

    def release(self) -> None:
        """Let go of the bytes. Views and slices taken from ``data`` stay valid. Idempotent."""
        self._view = None

    def __len__(self) -> int:
        return self.data.nbytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
