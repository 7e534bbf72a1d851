"""Other loggers' JSON: finds time, level, message and cause under the names that the usual loggers give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stagewire_logs.lines import Detail, Line
from stagewire_logs.times import stamp_of

TIME_KEYS = (
    "timestamp", "@timestamp", "time", "ts", "asctime", "datetime", "Timestamp", "timeUnixNano", "observedTimeUnixNano",
    "eventTime", "date", "@t", "__REALTIME_TIMESTAMP", "t",
)  # fmt: skip
"""Where a time may be, most likely first."""

MESSAGE_KEYS = ("event", "message", "msg", "short_message", "body", "Body", "MESSAGE", "@m", "@mt", "log", "text")
"""Where a message may be."""

LEVEL_KEYS = (
    "level", "levelname", "severity", "severityText", "SeverityText", "log.level", "lvl", "log_level", "levelno",
    "severityNumber", "SeverityNumber", "PRIORITY", "@l",
)  # fmt: skip
"""Where a level may be."""

_NAMES = {
    "trace": "debug", "verbose": "debug", "debug": "debug", "dbg": "debug", "d": "debug",
    "info": "info", "information": "info", "informational": "info", "notice": "info", "success": "info", "inf": "info",
    "i": "info", "default": "info", "warning": "warning", "warn": "warning", "wrn": "warning", "w": "warning",
    "error": "error", "err": "error", "e": "error", "exception": "error", "severe": "error", "eror": "error",
    "critical": "critical", "crit": "critical", "fatal": "critical", "panic": "critical", "dpanic": "critical",
    "alert": "critical", "emergency": "critical", "emerg": "critical", "ftl": "critical",
}  # fmt: skip

Scale = Sequence[tuple[float, str]]

PYTHON: Scale = ((20, "debug"), (30, "info"), (40, "warning"), (50, "error"))
PINO: Scale = ((30, "debug"), (40, "info"), (50, "warning"), (60, "error"))
OTEL: Scale = ((9, "debug"), (13, "info"), (17, "warning"), (21, "error"))
SYSLOG: Scale = ((3, "critical"), (4, "error"), (5, "warning"), (7, "info"))
"""Numeric levels: below which number which level holds; from the last number on ``critical`` (syslog: ``debug``)."""

_SCALES: Mapping[str, Scale] = {
    "levelno": PYTHON, "severityNumber": OTEL, "SeverityNumber": OTEL, "PRIORITY": SYSLOG,
}  # fmt: skip

_NESTS = ("attributes", "Attributes", "extra", "fields", "context", "ctx", "resource")
"""Where loggers put the fields of the application."""

IDS = ("request_id", "session_id", "stage", "edge", "pipeline", "cause")


def normalise(raw: Detail) -> tuple[Line, Detail, str]:
    """Return any logger's line in our terms: the line, all its fields, nested ones brought up, and whose it is."""
    fields, whose = _unfold(raw)
    message = _first(fields, MESSAGE_KEYS)
    line = Line(
        timestamp=next(filter(None, (stamp_of(found) for found in _all(fields, TIME_KEYS))), ""),
        level=_level(fields, whose),
        event=_text(_inner(message)) if message is not None else "-",
        seconds=_number(fields.get("seconds")),
    )
    for name in IDS:
        value = _first(fields, _SPELLINGS.get(name, (name,)))
        if isinstance(value, str | int) and not isinstance(value, bool):
            setattr(line, name, str(value))
    line.cause = line.cause or cause_of(fields)
    return line, fields, whose


_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "request_id": ("request_id", "requestId", "req_id", "reqId", "request.id", "correlation_id"),
    "session_id": ("session_id", "sessionId", "session.id"),
}


def _unfold(raw: Detail) -> tuple[Detail, str]:
    record = raw.get("record")
    if isinstance(record, dict) and "text" in raw:
        return _loguru(record), "loguru"
    fields = dict(raw)
    for nest in _NESTS:
        inner = raw.get(nest)
        if isinstance(inner, list):
            inner = _pairs(inner)
        if isinstance(inner, dict):
            fields = {**inner, **fields}
    return fields, _whose(raw)


def _loguru(record: Detail) -> Detail:
    extra = record.get("extra")
    fields = {**(extra if isinstance(extra, dict) else {}), **record}
    time, level = record.get("time"), record.get("level")
    if isinstance(time, dict):
        fields["timestamp"] = time.get("timestamp", time.get("repr"))
    if isinstance(level, dict):
        fields["level"] = level.get("name", level.get("no"))
    return fields


def _pairs(items: list[Any]) -> Detail:
    """Read OTLP's list of ``{"key": …, "value": {"stringValue": …}}``."""
    return {str(item["key"]): _inner(item.get("value")) for item in items if isinstance(item, dict) and "key" in item}


def _inner(value: Any) -> Any:
    """Unwrap OTLP's ``{"stringValue": …}``."""
    if isinstance(value, dict) and len(value) == 1:
        name, inner = next(iter(value.items()))
        if name.endswith("Value"):
            return inner
    return value


def _whose(raw: Detail) -> str:
    for name, there in _MARKS:
        if there(raw):
            return name
    return "other JSON"


def _has(*keys: str) -> Callable[[Detail], bool]:
    return lambda raw: all(key in raw for key in keys)


OURS = "stagewire"
"""Whose line it is when it is no other logger's."""

_MARKS: Sequence[tuple[str, Callable[[Detail], bool]]] = (
    (OURS, _has("event", "pipeline", "timestamp")),
    (
        "OpenTelemetry",
        lambda raw: bool(raw.keys() & {"severityNumber", "SeverityNumber", "SeverityText", "timeUnixNano"}),
    ),
    ("bunyan", _has("msg", "v", "name", "hostname")),
    ("pino", lambda raw: "msg" in raw and isinstance(raw.get("level"), int)),
    ("GELF", _has("short_message")),
    ("zap", _has("msg", "ts")),
    ("logrus or slog", _has("msg", "time")),
    ("ECS", _has("@timestamp", "message")),
    ("structlog", _has("event")),
    ("python logging", lambda raw: "message" in raw and bool(raw.keys() & {"asctime", "levelname", "levelno"})),
)


def _level(fields: Detail, whose: str) -> str:
    for key in LEVEL_KEYS:
        value = _get(fields, key)
        if isinstance(value, str) and not value.isdigit():
            if name := _NAMES.get(value.strip().lower()):
                return name
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            return _numeric(float(value), key, whose)
    return "info"


def _numeric(value: float, key: str, whose: str) -> str:
    usual = {"GELF": SYSLOG, "pino": PINO, "bunyan": PINO}.get(whose, PYTHON)
    scale = _SCALES.get(key, usual)
    above = "debug" if scale is SYSLOG else "critical"
    return next((level for below, level in scale if value < below), above)


def cause_of(fields: Mapping[str, Any]) -> str | None:
    """Return why something failed, in one line: the error may be a text, an object, a traceback or a list of them."""
    for key in ("cause", "error", "err", "exception", "exc_info", "error.message", "stack", "stacktrace"):
        found = _why(_get(fields, key))
        if found:
            return found
    return None


def _why(value: Any) -> str:
    if isinstance(value, list):
        return _why(value[0]) if value else ""
    if isinstance(value, str):
        return next((line.strip() for line in reversed(value.splitlines()) if line.strip()), "")
    if isinstance(value, Mapping):
        kind = _first(value, ("exc_type", "type", "name", "class"))
        text = _first(value, ("exc_value", "message", "msg", "value"))
        return ": ".join(_text(part) for part in (kind, text) if part not in {None, ""} and not isinstance(part, dict))
    return ""


def _all(fields: Mapping[str, Any], keys: Sequence[str]) -> list[Any]:
    return [found for found in (_get(fields, key) for key in keys) if found is not None]


def _first(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next(iter(_all(fields, keys)), None)


def _get(fields: Mapping[str, Any], key: str) -> Any:
    """Look a name up, flat or nested: ``trace.id`` is ``{"trace.id": …}`` or ``{"trace": {"id": …}}``."""
    if key in fields or "." not in key:
        return fields.get(key)
    outer, _, inner = key.partition(".")
    nested = fields.get(outer)
    return _get(nested, inner) if isinstance(nested, Mapping) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
