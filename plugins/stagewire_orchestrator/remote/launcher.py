"""Starts the workers of a pipeline as child processes, and starts those again that die (``workers: local``)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stagewire import emit
from stagewire_orchestrator.remote.labels import labelled
from stagewire_orchestrator.remote.liveness import Liveness
from stagewire_orchestrator.remote.names import Seat

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

PATIENCE = 10.0
"""Seconds that a worker has to end in order before it is killed."""

LONGEST_LINE = 1024 * 1024

Spawn = Callable[..., "asyncio.Task[None]"]
OnExit = Callable[[Seat, str], None]
"""Takes the seat whose process ended, and how that ended."""


class Launcher:
    """One child process for each seat. None outlives this process, however this one ends: their input is a pipe.

    Args:
        files: The configuration and its overlays.
        seats: The seats that it starts; those of other stages are hosted by others.
        liveness: The pauses before a further start.
        scope: What the workers' mailboxes and edges are called by.
        log: Where events go.
        write: Takes the lines that the workers write, labelled.
    """

    def __init__(
        self,
        files: Sequence[Path],
        seats: Sequence[Seat],
        liveness: Liveness,
        *,
        scope: str,
        log: FilteringBoundLogger,
        write: Callable[[str], None] | None = None,
    ) -> None:
        self._files = [str(path.absolute()) for path in files]
        self._seats = frozenset(seats)
        self._liveness = liveness
        self._scope = scope
        self._log = log
        self._write = write or _write
        self._processes: dict[Seat, asyncio.subprocess.Process] = {}
        self._failures: dict[Seat, int] = {}
        self._stopping = False

    def hosts(self, seat: Seat) -> bool:
        """Return whether the seat's worker is started here."""
        return seat in self._seats

    def start(self, seats: Sequence[Seat], spawn: Spawn, on_exit: OnExit) -> None:
        """Start the workers of those seats that are its own."""
        for seat in seats:
            if seat in self._seats:
                spawn(self._keep(seat, on_exit), name=f"process of {seat}")

    def registered(self, seat: Seat) -> None:
        """A worker came up: its next death is its first."""
        self._failures.pop(seat, None)

    async def stop(self) -> None:
        """End every worker: in order, and after `PATIENCE` seconds by force."""
        self._stopping = True
        await asyncio.gather(*(self._end(process) for process in self._processes.values()))

    async def _keep(self, seat: Seat, on_exit: OnExit) -> None:
        while True:
            how = await self._run(seat)
            if self._stopping:
                return
            on_exit(seat, how)
            failures = self._failures[seat] = self._failures.get(seat, 0) + 1
            pause = min(self._liveness.backoff_max, self._liveness.backoff * 2.0 ** min(failures - 1, 30))
            emit(self._log, "worker.restarted", stage=seat.stage, replica=seat.replica, cause=how, pause=pause)
            await asyncio.sleep(pause)

    async def _run(self, seat: Seat) -> str:
        process = await asyncio.create_subprocess_exec(
            *self._command(seat),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl-C is for the orchestrator, which ends its workers in order
        )
        self._processes[seat] = process
        try:
            await self._relay(seat, process)
            return _how(await process.wait())
        finally:
            del self._processes[seat]
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _command(self, seat: Seat) -> list[str]:
        overlays = [part for path in self._files[1:] for part in ("-c", path)]
        options = ["--stage", str(seat.stage), "--replica", str(seat.replica), "--scope", self._scope]
        return [sys.executable, "-m", "stagewire", "worker", self._files[0], *overlays, *options, "--until-eof"]

    async def _relay(self, seat: Seat, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None, "it is a pipe"
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # a line beyond the limit
                continue
            if not line:
                return
            self._write(labelled(seat, line.decode("utf-8", "backslashreplace").rstrip("\r\n")))

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            process.stdin.close()  # the end of its input is its sign to stop
        try:
            async with asyncio.timeout(PATIENCE):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _how(code: int) -> str:
    if code < 0:
        return f"its process was killed by {signal.Signals(-code).name}"
    return f"its process ended with status {code}"


def _write(line: str) -> None:
    sys.stderr.write(line + "\n")
