"""Fixtures of the testing kit: ``pytest_plugins = ["stagewire.testing.pytest_plugin"]`` in the top conftest.

Or import the fixture by name in a conftest of your own. The kit itself does not need pytest; this module does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stagewire.testing import leaks


@pytest.fixture
def no_leaks() -> Iterator[None]:
    """Fail the test if it leaves threads, file descriptors, or errors of asyncio that nobody retrieved.

    ``pytestmark = pytest.mark.usefixtures("no_leaks")`` puts it on a module.
    """
    with leaks.no_leaks():
        yield
