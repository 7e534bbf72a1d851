"""Warnings and errors, grouped by cause with the first example of each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stagewire_logs.lines import Line

MAX_GROUPS = 500
"""Groups that are told apart; further causes are counted together."""

CAUSE = 300
"""Characters of a cause."""

_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,}){0,4}\b|\d+(?:\.\d+)?")
"""What differs between occurrences of one cause: numbers, addresses, ids."""

GroupKey = tuple[str, str, str, str, str]
"""Pipeline, level, event, stage, cause with its variable parts as ``#``."""


@dataclass(slots=True)
class Group:
    """What failed in the same way, with its first example."""

    count: int
    first: str
    last: str
    file: str
    line: int
    cause: str
    request_id: str
    session_id: str


class Groups(dict[GroupKey, Group]):
    """Groups of warnings and errors, bounded in number."""

    def note(self, line: Line, cause: str, file: str, number: int) -> None:
        """Count a warning or an error."""
        key = (line.pipeline, line.level, line.event, line.stage or "", _VARIABLE.sub("#", cause[:CAUSE]))
        known = self.get(key)
        if known is not None:
            known.count += 1
            known.last = max(known.last, line.timestamp)
            return
        ids = (line.request_id or "", line.session_id or "")
        self._put(key, Group(1, line.timestamp, line.timestamp, file, number, cause[:CAUSE], *ids))

    def merge(self, later: Groups, before: int) -> None:
        """Take the groups of a stretch that begins ``before`` lines after this one does."""
        for key, group in later.items():
            group.line += before
            self._put(key, group)

    def _put(self, key: GroupKey, group: Group) -> None:
        if key not in self and len(self) >= MAX_GROUPS:
            key = ("", key[1], "(further causes)", "", "")
        known = self.get(key)
        if known is None:
            self[key] = group
        else:
            known.count += group.count
            known.last = max(known.last, group.last)
