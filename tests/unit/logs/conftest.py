from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import pytest

from stagewire import LoggingOptions, make_logger

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True


class Book:
    """A logger and what it has written."""

    def __init__(self, stream: io.StringIO, log: FilteringBoundLogger) -> None:
        self.stream = stream
        self.log = log

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def last(self) -> dict[str, Any]:
        return self.lines[-1]


def open_book(
    *,
    format: Literal["auto", "json", "console"] = "json",  # noqa: A002 — the option's name
    terminal: bool = False,
    level: Literal["debug", "info", "warning", "error"] = "debug",
    secrets: Iterable[str] = (),
) -> Book:
    stream = Terminal() if terminal else io.StringIO()
    options = LoggingOptions(level=level, format=format)
    return Book(stream, make_logger(options, pipeline="demo", stream=stream, secrets=secrets))


@pytest.fixture
def make_book() -> Callable[..., Book]:
    return open_book


@pytest.fixture
def book() -> Book:
    return open_book()
