"""A put needs no more memory for a larger file."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MIB = 1024 * 1024
CONFIG = """
version: 1
pipeline: write-session
exports:
  files: {{root: {root}}}
logging: {{level: warning}}
"""


def peak_of(process: subprocess.Popen[bytes]) -> float:
    """Return the peak of a process's memory in MiB, looking until it ends."""
    status, peak = Path(f"/proc/{process.pid}/status"), 0.0
    while process.poll() is None:
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
        peak = max(peak, int(found[1]) / 1024 if found else 0.0)
        time.sleep(0.02)
    return peak


def test_ws1_ws7_a_large_put_stays_bounded_with_everything_in_one_process(tmp_path: Path) -> None:
    """Controller, agent and store together: the window, the store's copies, the agent's queue, and the program."""
    config, source = tmp_path / "writes.yaml", tmp_path / "large"
    config.write_text(CONFIG.format(root=tmp_path / "files"))
    with source.open("wb") as file:
        file.truncate(640 * MIB)

    command = [sys.executable, "-m", "stagewire", "put", str(source), "files/large", "-c", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = peak_of(process)

    assert process.returncode == 0
    assert (tmp_path / "files/large").stat().st_size == 640 * MIB
    (tmp_path / "files/large").unlink()
    assert 32 < peak < 400 + 150, "what a controller and an agent may take, and less than the file"
