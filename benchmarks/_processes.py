"""What processes cost: CPU time and peak memory, read from ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
KIB = 1024


def session_cpu(session: int) -> float:
    """Return the seconds of CPU that the processes of a session have had, with their children that have ended."""
    return sum(_ticks(path, session) for path in Path("/proc").glob("[0-9]*/stat")) / TICKS


def forget_peak(pid: int) -> None:
    """Let the peak of a process begin anew from what it has now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_bytes(pid: int) -> int:
    """Return the most resident memory that a process had, shared segments that it has mapped included."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * KIB
    raise RuntimeError(f"process {pid} has ended")


def _ticks(path: Path, session: int) -> int:
    try:
        fields = path.read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0
    return sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
