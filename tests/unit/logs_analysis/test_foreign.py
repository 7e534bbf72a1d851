"""Other loggers' JSON is understood: time, level, message, cause and ids under the names they give them (LG-6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stagewire_logs.foreign import normalise
from stagewire_logs.times import stamp_of

WHEN = "2026-12-01T12:00:00.250000Z"
EPOCH = 1_796_126_400.25

LINES: dict[str, tuple[dict[str, Any], str, str]] = {
    "structlog": (
        {"event": "hello", "level": "warning", "timestamp": "2026-12-01T12:00:00.25Z"}, "structlog", "warning",
    ),
    "python-json-logger": (
        {"message": "hello", "asctime": "2026-12-01 12:00:00,250", "levelname": "WARNING"}, "python logging", "warning",
    ),
    "levelno": ({"message": "hello", "asctime": "2026-12-01 12:00:00,250", "levelno": 30}, "python logging", "warning"),
    "pino": ({"level": 40, "time": 1796126400250, "pid": 1, "hostname": "h", "msg": "hello"}, "pino", "warning"),
    "bunyan": (
        {"name": "app", "hostname": "h", "pid": 1, "level": 40, "msg": "hello", "time": WHEN, "v": 0},
        "bunyan", "warning",
    ),
    "zap": ({"level": "warn", "ts": EPOCH, "caller": "a.go:1", "msg": "hello"}, "zap", "warning"),
    "logrus": (
        {"level": "warning", "time": "2026-12-01T13:00:00.25+01:00", "msg": "hello"}, "logrus or slog", "warning",
    ),
    "loguru": (
        {
            "text": "12:00 | WARNING | hello",
            "record": {
                "time": {"timestamp": EPOCH, "repr": "2026-12-01 12:00:00.25+00:00"},
                "level": {"name": "WARNING", "no": 30}, "message": "hello", "extra": {"request_id": "r1"},
            },
        },
        "loguru", "warning",
    ),
    "OTel": (
        {"Timestamp": 1796126400250000000, "SeverityText": "WARN", "Body": "hello", "Attributes": {"request_id": "r1"}},
        "OpenTelemetry", "warning",
    ),
    "OTLP": (
        {
            "timeUnixNano": "1796126400250000000", "severityNumber": 13, "body": {"stringValue": "hello"},
            "attributes": [{"key": "request_id", "value": {"stringValue": "r1"}}],
        },
        "OpenTelemetry", "warning",
    ),
    "ECS": ({"@timestamp": "2026-12-01T12:00:00.250Z", "log.level": "WARN", "message": "hello"}, "ECS", "warning"),
    "ECS, nested": ({"@timestamp": WHEN, "log": {"level": "warn"}, "message": "hello"}, "ECS", "warning"),
    "GELF": ({"version": "1.1", "short_message": "hello", "timestamp": EPOCH, "level": 4}, "GELF", "warning"),
    "journald": (
        {"MESSAGE": "hello", "PRIORITY": "4", "__REALTIME_TIMESTAMP": "1796126400250000"}, "other JSON", "warning",
    ),
    "GCP": ({"severity": "WARNING", "time": WHEN, "message": "hello"}, "other JSON", "warning"),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_lg6_time_level_and_message_of_the_usual_loggers(name: str) -> None:
    raw, whose, level = LINES[name]
    line, fields, found = normalise(raw)
    assert (line.timestamp, line.level, line.event, found) == (WHEN, level, "hello", whose)
    if "request_id" in json.dumps(raw):
        assert line.request_id == fields["request_id"] == "r1"


@pytest.mark.parametrize(
    ("value", "stamp"),
    [
        (EPOCH, WHEN),
        (1796126400250, WHEN),
        (1796126400250000, WHEN),
        (1796126400250000000, WHEN),
        ("1796126400.25", WHEN),
        ("2026-12-01T12:00:00.250000123Z", WHEN),
        ("2026-12-01T12:00:00.25", WHEN),
        ("2026-12-01 14:00:00.25+0200", WHEN),
        ("20261201T120000Z", "2026-12-01T12:00:00.000000Z"),
        (0, "1970-01-01T00:00:00.000000Z"),
        (True, ""),
        ("yesterday", ""),
        (float("inf"), ""),
        (float("nan"), ""),
        (None, ""),
        ({}, ""),
        ("0001-01-01T00:00:00+23:59", ""),
    ],
)
def test_lg6_every_form_of_time(value: object, stamp: str) -> None:
    assert stamp_of(value) == stamp


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"exception": "Traceback (most recent call last):\n  File …\nValueError: no\n"}, "ValueError: no"),
        ({"exception": [{"exc_type": "ValueError", "exc_value": "no", "frames": []}]}, "ValueError: no"),
        ({"err": {"type": "TypeError", "message": "no", "stack": "…"}}, "TypeError: no"),
        ({"error": "dial tcp: refused"}, "dial tcp: refused"),
        ({"error": {"message": "no", "type": "KeyError"}}, "KeyError: no"),
        ({"error.message": "no"}, "no"),
        ({"exception": {"type": "ValueError", "value": "no"}}, "ValueError: no"),
        ({"exception": []}, None),
    ],
)
def test_lg1_the_cause_of_an_error_in_any_form(fields: dict[str, Any], cause: str | None) -> None:
    assert normalise({"event": "failed", "level": "error", "timestamp": WHEN, **fields})[0].cause == cause


def test_lg6_foreign_lines_are_counted_by_their_logger_and_read(summarise: Any) -> None:
    found = summarise([LINES["pino"][0], LINES["zap"][0], LINES["pino"][0]])
    assert found.foreign == {"pino": 2, "zap": 1}
    assert (found.records, found.levels, found.damage) == (3, {"warning": 3}, [])
