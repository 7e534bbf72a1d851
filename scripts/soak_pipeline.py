"""Send many requests through stages in other processes, over RabbitMQ: memory must stay where it was.

    python scripts/soak_pipeline.py [REQUESTS]

Uses the broker at STAGEWIRE_AMQP_URL, else starts one of its own. Prints the resident memory of the orchestrator and of
each worker as it goes, and exits 1 when one of them grows by more than 10 MB after the first 1,000 requests.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from stagewire import App, Job
from stagewire.testing.services import PrivateRabbitMQ
from stagewire_orchestrator import Orchestrator
from stagewire_orchestrator.testing import driven

WARM = 1_000
"""Requests after which memory counts."""

GROWTH = 10.0
"""MB by which a process may grow from there on."""

STEP = 5_000
"""Requests between two lines of the report."""

CONFIG = """
version: 1
pipeline: orchestrator
name: soak-pipeline
workers: local
logging: {level: error}
limits: {requests: 100}
transport: {use: rabbitmq, url: "${env:STAGEWIRE_AMQP_URL}"}
stages: {sentences: {use: text.sentences}, morse: {use: morse.encode}}
edges: [{from: sentences, to: morse, kind: chunk}]
outputs: {morse: {file: x.txt}}
"""

TEXT = b"The wire is fine. The water rises. All is well."


class Meter:
    """Reads the resident memory of this process and of its workers, in MB."""

    def __init__(self) -> None:
        self._first: dict[str, float] = {}

    def note(self, done: int) -> None:
        """Print where memory is; the first time is what later ones are held against."""
        now = {name: resident(pid) for name, pid in processes().items()}
        self._first = self._first or now
        parts = (f"{name} {mb:.1f} MB ({mb - self._first[name]:+.1f})" for name, mb in now.items())
        print(f"{done:,} requests: " + ", ".join(parts), flush=True)

    def grown(self) -> list[str]:
        """Return which processes are larger than they may be."""
        return [name for name, pid in processes().items() if resident(pid) - self._first[name] > GROWTH]


def processes() -> dict[str, int]:
    """Return the process ids of the orchestrator and of its workers."""
    found = {"orchestrator": os.getpid()}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text().split("\0")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid() and "--stage" in words:
            found[words[words.index("--stage") + 1]] = int(folder.name)
    return found


def resident(pid: int) -> float:
    """Return a process's resident memory in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def drive(orchestrator: Orchestrator, requests: int, meter: Meter) -> None:
    """Send the requests, as many at a time as the limits allow."""

    async def add() -> None:
        for number in range(requests):
            await orchestrator.add_request(f"r{number}", TEXT)

    adding = asyncio.create_task(add())
    done = 0
    while done < requests:
        output = await orchestrator.next_output(60)
        if not output.finished:
            continue
        if output.error is not None:
            raise output.error
        done += 1
        if done in (WARM, requests) or (done > WARM and not done % STEP):
            meter.note(done)
    await adding


def soak(requests: int, folder: Path) -> int:
    """Run; returns the exit status."""
    file = folder / "soak.yaml"
    file.write_text(CONFIG)
    app, meter, grown = App(), Meter(), list[str]()

    async def driving(orchestrator: Orchestrator) -> None:
        await drive(orchestrator, requests, meter)
        grown.extend(meter.grown())

    asyncio.run(app.run(driven(app.load([file]), driving), Job(None, folder)))
    print(f"grown by more than {GROWTH:g} MB: {', '.join(grown) or 'none'}")
    return int(bool(grown))


def main() -> int:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(description="Soak stages in other processes")
    parser.add_argument("requests", type=int, nargs="?", default=50_000)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        if "STAGEWIRE_AMQP_URL" not in os.environ:
            os.environ["STAGEWIRE_AMQP_URL"] = stack.enter_context(PrivateRabbitMQ()).url
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        return soak(max(WARM, arguments.requests), folder)


if __name__ == "__main__":
    sys.exit(main())
