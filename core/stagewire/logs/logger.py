"""Builds loggers: one JSON object per line for programs, colour for a person on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import msgspec
from pydantic import SecretStr

from stagewire.config.models import LoggingOptions
from stagewire.logs.redaction import Redactor
from stagewire.logs.sink import FileTarget, LogSink, StreamTarget
from stagewire.logs.trace import exception_of, readable, stacks
from stagewire.logs.values import Cleaner

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_FIRST = ("request_id", "session_id", "stage", "replica", "edge", "chunk_id", "worker", "lease_id", "trace_id")
"""The ids that a person looks for, in the order in which they follow the event."""

_HEAD = frozenset({"event", "pipeline"})
_RESERVED = frozenset({"timestamp", "level", "exception", "stack", "logger", "logger_name"})
"""Names that a renderer gives a meaning of its own."""

_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""Line ends and terminal controls that JSON does not escape by itself: some readers would see two lines."""

Render = Callable[[dict[str, Any]], str]


def open_sink(options: LoggingOptions, stream: TextIO | None = None) -> LogSink:
    """Open where ``options`` say that logs go: their file, or else ``stream`` (default: standard error).

    Raises:
        ConfigError: The file cannot be opened.
    """
    if options.file is not None:
        return LogSink(FileTarget(Path(options.file)))
    return LogSink(StreamTarget(sys.stderr if stream is None else stream))


def make_logger(
    options: LoggingOptions,
    *,
    pipeline: str,
    stream: TextIO | None = None,
    sink: LogSink | None = None,
    secrets: Iterable[str | SecretStr] = (),
) -> FilteringBoundLogger:
    """Build a logger of its own; nothing global is read or set, so two Apps may differ.

    Each call writes one line with ``timestamp``, ``level``, ``event``, ``pipeline``, what is bound, and its fields. It
    never raises, shows no local variables and no content of bytes, hides secrets, and bounds every value. Thread-safe.

    Args:
        options: Level, format and file.
        pipeline: The pipeline's name, in every line.
        stream: Where lines go when the options name no file. Default: standard error as it is now.
        sink: Writes there instead, and is the caller's to close.
        secrets: Values that are hidden wherever they occur, beside those that are recognised.

    Raises:
        ConfigError: The file cannot be opened.
    """
    import structlog  # noqa: PLC0415 — takes 0.2 s, and `import stagewire` needs none of it

    sink = sink or open_sink(options, stream)
    made = structlog.wrap_logger(sink, **_settings(options, pipeline, sink, secrets))
    return cast("FilteringBoundLogger", made.bind())


def configure_logging(
    options: LoggingOptions, *, pipeline: str, stream: TextIO | None = None, secrets: Iterable[str | SecretStr] = ()
) -> FilteringBoundLogger:
    """As `make_logger`, and make ``structlog.get_logger()`` anywhere in this process write the same way.

    For programs only; a library, a test or a second App uses `make_logger`.
    """
    import structlog  # noqa: PLC0415 — see make_logger

    sink = open_sink(options, stream)
    settings = _settings(options, pipeline, sink, secrets)
    structlog.configure(logger_factory=lambda *_names: sink, **settings)
    return cast("FilteringBoundLogger", structlog.get_logger().bind())


def fallback_logger() -> FilteringBoundLogger:
    """Return a logger of warnings to standard error, for objects that are used without an App and were given none."""
    return make_logger(LoggingOptions(level="warning"), pipeline="-")


def _settings(
    options: LoggingOptions, pipeline: str, sink: LogSink, secrets: Iterable[str | SecretStr]
) -> dict[str, Any]:
    import structlog  # noqa: PLC0415 — see make_logger

    console = options.format == "console" or (options.format == "auto" and sink.terminal)
    render = _console(colors=sink.terminal and "NO_COLOR" not in os.environ) if console else _json
    line = _Line(pipeline, Cleaner(Redactor(secrets), printable=console), render)
    return {
        "processors": [line],
        "wrapper_class": structlog.make_filtering_bound_logger(structlog.processors.NAME_TO_LEVEL[options.level]),
        "context_class": dict,
        "cache_logger_on_first_use": False,
    }


class _Line:
    """The one processor: makes an event's fields into its line."""

    def __init__(self, pipeline: str, cleaner: Cleaner, render: Render) -> None:
        self._pipeline = pipeline
        self._cleaner = cleaner
        self._render = render

    def __call__(self, _logger: object, level: str, fields: MutableMapping[str, Any]) -> str:
        try:
            return self._render(self._line(level, fields))
        except Exception as error:  # noqa: BLE001 — logging must never break the work
            return self._render(self._head(level, {"event": "log.failed"}) | {"cause": type(error).__name__})

    def _line(self, level: str, fields: MutableMapping[str, Any]) -> dict[str, Any]:
        error = exception_of(fields.pop("exc_info", None))
        clean = self._cleaner.clean(fields)
        line = self._head(level, clean)
        line |= {key: clean.pop(key) for key in _FIRST if key in clean}
        line |= {f"field_{key}" if key in _RESERVED else key: value for key, value in clean.items() if key not in _HEAD}
        if error is not None:
            line |= self._cleaner.clean({"exception": stacks(error)})
        return line

    def _head(self, level: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "timestamp": datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z",
            "level": level,
            "event": fields.get("event"),
            "pipeline": fields.get("pipeline", self._pipeline),
        }


def _json(line: dict[str, Any]) -> str:
    text = msgspec.json.encode(line).decode()
    return text if text.isascii() else text.translate(_ESCAPED)


def _console(*, colors: bool) -> Render:
    from structlog.dev import ConsoleRenderer, plain_traceback  # noqa: PLC0415 — see make_logger

    renderer = ConsoleRenderer(colors=colors, exception_formatter=plain_traceback)

    def render(line: dict[str, Any]) -> str:
        if "exception" in line:
            line["exception"] = readable(line["exception"])
        return renderer(None, line["level"], line)

    return render
