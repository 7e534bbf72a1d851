"""Write sessions: put and get of 4 KiB to 1 GiB over the three configurations, beside what copies files otherwise.

Ours: embedded, to an agent over RabbitMQ and shared memory, and to an agent over RabbitMQ and Redis; payloads by
reference and raw. The peers: ``cp``; ``rsync`` where it is installed; a bare asyncio socket sink that checksums and
writes; and confirmed durable aio-pika messages of at most 1 MiB, which nobody writes anywhere. Clients, agents and sink
are processes of their own. CPU counts client and agent together, broker and Redis each by itself.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from _processes import forget_peak, peak_bytes, session_cpu
from _table import Row, show
from _writes_subjects import Bench, Load, Subject

KIB, MIB, GIB = 1024, 1024**2, 1024**3
SIZES = {"4 KiB": 4 * KIB, "1 MiB": MIB, "8 MiB": 8 * MIB, "64 MiB": 64 * MIB, "1 GiB": GIB}
MOST_FILES = 500


@dataclass
class Figures:
    """What the rounds of one subject took."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def note(self, unit: str, value: float) -> None:
        self.values.setdefault(unit, []).append(value)


def once(subject: Subject, op: str, load: Load, folder: Path, figures: Figures) -> None:
    """Carry files once and note what it took."""
    pids = [subject.client.pid, *subject.helpers]
    for pid in pids:
        forget_peak(pid)
    work, serving = _cpu(pids), {name: session_cpu(pid) for name, pid in subject.servers.items()}
    seconds = subject.carry(op, load, folder)
    size = load.files * load.size
    figures.note("MiB/s", size / MIB / seconds)
    if load.size < MIB:
        figures.note("files/s", load.files / seconds)
    figures.note("CPU s/GiB", (_cpu(pids) - work) / size * GIB)
    for name, pid in subject.servers.items():
        figures.note(f"{name} CPU s/GiB", (session_cpu(pid) - serving[name]) / size * GIB)
    figures.note("client MiB", peak_bytes(subject.client.pid) / MIB)
    for pid in subject.helpers:
        figures.note("agent MiB", peak_bytes(pid) / MIB)


def _cpu(sessions: Sequence[int]) -> float:
    return sum(map(session_cpu, sessions))


def carried(bench: Bench, load: Load, rounds: int) -> Iterator[tuple[str, list[Row]]]:
    """Yield the figures of put and of get: every subject once a round, in turn."""
    found = {op: {name: Figures() for name, subject in bench.subjects.items() if op in subject.ops} for op in OPS}
    back = bench.folder / "back"
    for _round in range(rounds):
        for name, subject in bench.subjects.items():
            for op in subject.ops:
                folder = subject.root if op == "put" else back
                folder.mkdir(exist_ok=True)
                once(subject, op, load, folder, found[op][name])
            for path in (*subject.root.glob("f*"), *back.glob("f*")):
                path.unlink(missing_ok=True)
    for op, figures in found.items():
        yield op, rows_of(bench.subjects, figures)


OPS = ("put", "get")


def rows_of(subjects: dict[str, Subject], figures: dict[str, Figures]) -> list[Row]:
    """Return the medians, ours with a row for each peer."""
    medians = {
        name: {unit: statistics.median(values) for unit, values in found.values.items()}
        for name, found in figures.items()
    }
    rows = []
    for name, found in medians.items():
        for unit, value in found.items():
            peers = {peer: medians.get(peer, {}).get(unit) for peer in subjects[name].peers}
            compared = [Row(name, value, unit, peer, value / other) for peer, other in peers.items() if other]
            rows += compared if compared and not unit.endswith(" MiB") else [Row(name, value, unit)]
    return rows


def measure(
    *, most: int, rounds: int, sizes: Sequence[str], only: Callable[[str], bool]
) -> Iterator[tuple[str, list[Row]]]:
    """Yield the title and the figures of each part; no part carries more than ``most`` bytes."""
    with ExitStack() as stack:
        bench = Bench(stack, only)
        bench.open()
        for label, parallel in product(sizes, (1, 8)):
            size = SIZES[label]
            if size * parallel > most:
                continue
            source = bench.folder / "source"
            source.write_bytes((os.urandom(min(size, MIB))) * max(1, size // MIB))
            files = max(parallel, min(MOST_FILES, most // size))
            for op, rows in carried(bench, Load(source, size, files, parallel), rounds):
                yield f"{op} of {label}, {parallel} at a time", rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one round, and no parts above 64 MiB")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of every part; default: 3")
    parser.add_argument("--size", action="append", choices=list(SIZES), help="only files of this size")
    parser.add_argument("--subject", action="append", metavar="TEXT", help="only subjects whose names have this")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the services and clients as Ctrl-C does
    wanted: list[str] = arguments.subject or [""]
    parts = measure(
        most=64 * MIB if arguments.quick else GIB,
        rounds=1 if arguments.quick else arguments.rounds,
        sizes=arguments.size or list(SIZES),
        only=lambda name: any(text in name for text in wanted),
    )
    for title, rows in parts:
        show(f"Writes: {title}", rows)


if __name__ == "__main__":
    main()
