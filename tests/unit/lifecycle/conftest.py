from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import LoggingOptions, make_logger

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class LogBook:
    """A logger and what it has written."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.log: FilteringBoundLogger = make_logger(
            LoggingOptions(level="debug", format="json"), pipeline="test", stream=self._stream
        )

    def lines(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self._stream.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]


@pytest.fixture
def book() -> LogBook:
    return LogBook()
