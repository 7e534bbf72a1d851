"""Which mailboxes there are: one for each seat of a worker, one for each orchestrator."""

from __future__ import annotations

from typing import NamedTuple

from stagewire import StageId


class Seat(NamedTuple):
    """One replica of one stage, whoever hosts it."""

    stage: StageId
    replica: int

    def __str__(self) -> str:
        return f"{self.stage}/{self.replica}"


def worker_mailbox(scope: str, seat: Seat) -> str:
    """Return the mailbox that whoever hosts the seat takes commands from."""
    return f"{scope}.worker.{seat.stage}.{seat.replica}"


def orchestrator_mailbox(scope: str, orchestrator: str) -> str:
    """Return the mailbox that one orchestrator takes reports from."""
    return f"{scope}.orchestrator.{orchestrator}"
