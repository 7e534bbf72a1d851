"""Lets pytest explain the asserts of the suites, where pytest is what imports them. Imported before they are."""

from __future__ import annotations

import sys

_pytest = sys.modules.get("pytest")
if _pytest is not None:
    _pytest.register_assert_rewrite("stagewire.testing.suites")
