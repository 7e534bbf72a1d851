"""What an orchestrator raises at its public face; what happens to an admitted request arrives as its last output."""

from __future__ import annotations

from stagewire import StagewireError


class RequestRefused(StagewireError):
    """The request was not admitted: its id is in use, the orchestrator is full, or it was aborted while it waited."""
