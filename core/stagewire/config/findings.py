"""Collects the faults of one configuration while it is validated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stagewire.config.document import MOST_PROBLEMS, Document, Reading, arrange
from stagewire.config.redact import masked
from stagewire.config.tree import Where
from stagewire.errors import ConfigError, Problem, bounded

MOST_CHARACTERS = 1_000
"""The most that one message has."""


class Findings:
    """The faults found so far. Belongs to one load.

    Attributes:
        secrets: Texts that no message of a plugin may show; our own messages do not quote secrets in the first place.
        cause: The first exception of a plugin that led to a fault; it becomes the `ConfigError`'s cause.
    """

    def __init__(self, document: Document, reading: Reading) -> None:
        self.document = document
        self.secrets: set[str] = set()
        self.cause: BaseException | None = None
        self._problems = list(reading.problems)
        self._foreign: set[Problem] = set()
        self._faulty = reading.faulty
        self._more = 0

    @property
    def full(self) -> bool:
        """Whether enough faults were found to stop looking for more."""
        return len(self._problems) >= MOST_PROBLEMS

    @property
    def found(self) -> bool:
        """Whether there is any fault."""
        return bool(self._problems)

    def value(self, path: Where, message: str, *, foreign: bool = False) -> None:
        """Report a fault of the value at ``path``, or of its absence. ``foreign``: in the words of a plugin."""
        problem = self._add(path, message, on_key=False)
        if problem is not None and foreign:
            self._foreign.add(problem)

    def key(self, path: Where, message: str) -> None:
        """Report a fault of the key at ``path``."""
        self._add(path, message, on_key=True)

    def more(self, count: int) -> None:
        """Count faults that are not described."""
        self._more += max(0, count)

    def raise_if_any(self, paths: Sequence[Path]) -> None:
        """Raise `ConfigError` with every fault, in the order of the files, if there is one."""
        if not self._problems:
            return
        problems = arrange(self._problems, paths, self._more)
        raise ConfigError([self._shown(problem) for problem in problems]) from self.cause

    def _shown(self, problem: Problem) -> Problem:
        secrets = self.secrets if problem in self._foreign else ()
        return replace(problem, message=bounded(masked(problem.message, secrets), MOST_CHARACTERS))

    def _add(self, path: Where, message: str, *, on_key: bool) -> Problem | None:
        above = range(len(path) + (0 if on_key else 1))
        if any(path[:length] in self._faulty for length in above):
            return None
        location = self.document.locate_key(path) if on_key else self.document.locate(path)
        problem = Problem(bounded(message, 10 * MOST_CHARACTERS), path, location)
        self._problems.append(problem)
        return problem
