"""Structured logs: one JSON object per line, without secrets, and no fault of logging reaches the work."""

from stagewire.logs.logger import configure_logging, fallback_logger, make_logger, open_sink
from stagewire.logs.redaction import MASK, Redactor, is_secret_key
from stagewire.logs.sink import FileTarget, LogSink, StreamTarget, Target

__all__ = [
    "MASK",
    "FileTarget",
    "LogSink",
    "Redactor",
    "StreamTarget",
    "Target",
    "configure_logging",
    "fallback_logger",
    "is_secret_key",
    "make_logger",
    "open_sink",
]
