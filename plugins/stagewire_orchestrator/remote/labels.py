"""Says in each line of a worker's output which worker wrote it."""

from __future__ import annotations

import json

from stagewire_orchestrator.remote.names import Seat


def labelled(seat: Seat, line: str) -> str:
    """Return the line with its worker: as a field where it is a log event, else in front of it."""
    if line.startswith("{") and line.endswith("}"):
        try:
            event = json.loads(line)
        except ValueError:
            pass
        else:
            return json.dumps({**event, "worker": str(seat)}, ensure_ascii=False)
    return f"{seat} | {line}"
