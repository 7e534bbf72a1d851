"""What these tests share."""

from __future__ import annotations

from stagewire.testing.pytest_plugin import no_leaks

__all__ = ["no_leaks"]
