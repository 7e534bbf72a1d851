"""What the commands do: each is one job of a pipeline, so that it starts, stops and fails as a run does (WS-21)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import msgspec

from stagewire import PluginError, Progress, RunReport, StagewireError
from stagewire.cli import Observe, Program, open_input
from stagewire_writes.errors import IsDirectory, NotDirectory
from stagewire_writes.hybrid import HybridWriter
from stagewire_writes.options import WritesOptions
from stagewire_writes.pipeline import EMBEDDED, WriteJob, WritePipeline, observer, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stagewire_writes.controller import WriteController
    from stagewire_writes.protocol import Entry, Written

DEADLINE = 30.0
BLOCK = 8 * 1024 * 1024
"""Bytes of one read of a file that is put."""

Do = Callable[["WriteController"], Awaitable[Any]]


def serve(
    program: Program, *, config: str, overlays: Sequence[str], export: str, node: str | None, deadline: float
) -> int:
    """Run an agent until a signal; returns the exit status."""
    loaded = _load(program, [config, *overlays])
    options: WritesOptions = loaded.options
    if export not in options.exports:
        raise click.BadParameter(f"{export!r} is none of {', '.join(options.exports)}", param_hint="--export")
    if options.agents == EMBEDDED:
        raise click.UsageError(f"{config} has embedded agents, which its own runs serve: set `agents: separate`")
    _report, status = program.run_job(loaded, WriteJob(None, Path(), agent=(export, node)), deadline=deadline)
    return status


def put_file(
    program: Program, *, configs: Sequence[str], file: str, place: str, observe: Observe, as_json: bool
) -> Callable[[], int]:
    """Write a file; returns what prints the outcome and has the exit status."""
    export, path = _file_place(place)
    with open_input(file, BLOCK) as source:

        async def do(controller: WriteController) -> Written:
            writer = HybridWriter(controller, export, path, observe=observer(observe, source.size))
            try:
                async for block in source:
                    await writer.write(block)
                return await writer.finish()
            except BaseException:
                await writer.abort()
                raise

        written, status = _perform(program, configs, do)

    def finish() -> int:
        if written is not None and as_json:
            click.echo(json.dumps({"place": place, **msgspec.to_builtins(written)}))
        elif written is not None:
            click.echo(f"{place}: {written.size:,} bytes")
        return status

    return finish


def get_file(program: Program, *, configs: Sequence[str], place: str, file: Path, observe: Observe) -> int:
    """Read a file into a local one, which appears whole or not at all; returns the exit status."""
    export, path = _file_place(place)

    async def do(controller: WriteController) -> None:
        entry = await controller.stat(export, path)
        if entry.directory:
            raise IsDirectory(f"{path!r}: it is a directory; name a file")
        done = 0
        with _target(file) as target:
            async with controller.pieces.stream(export, path, entry) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(target.write, piece)
                    done += len(piece)
                    observe(Progress(done, entry.size))

    return _perform(program, configs, do)[1]


def list_directory(program: Program, *, configs: Sequence[str], place: str, long_: bool, as_json: bool) -> int:
    """Print the entries of a directory; returns the exit status."""
    export, path = split(place)

    async def do(controller: WriteController) -> None:
        async for entry in _entries(controller, export, path.rstrip("/")):
            click.echo(json.dumps(msgspec.to_builtins(entry)) if as_json else _line(entry, long_=long_))

    return _perform(program, configs, do)[1]


def show_entry(program: Program, *, configs: Sequence[str], place: str, as_json: bool) -> int:
    """Print how a file or directory is; returns the exit status."""
    export, path = split(place)
    entry, status = _perform(program, configs, lambda controller: controller.stat(export, path.rstrip("/")))
    if entry is None:
        return status
    if as_json:
        click.echo(json.dumps({"place": place, **msgspec.to_builtins(entry)}))
        return status
    kind = "directory" if entry.directory else "file"
    for label, value in (
        ("place", place),
        ("kind", kind),
        ("bytes", f"{entry.size:,}"),
        ("modified", _time(entry)),
        ("version", entry.version),
    ):
        click.echo(f"{label:10}{value}")
    return status


def remove(program: Program, *, configs: Sequence[str], places: Sequence[str]) -> int:
    """Remove files and empty directories, in order, up to the first that cannot be; returns the exit status."""
    named = [_file_place(place) for place in places]

    async def do(controller: WriteController) -> None:
        for export, path in named:
            await controller.remove(export, path)

    return _perform(program, configs, do)[1]


def _perform(program: Program, configs: Sequence[str], do: Do) -> tuple[Any, int]:
    """Do something with a controller; returns its result (``None`` after a stop) and the exit status."""
    loaded = _load(program, configs)
    results: list[Any] = []
    errors: list[StagewireError] = []

    async def work(pipeline: WritePipeline) -> RunReport:
        try:
            results.append(await do(pipeline.controller))
        except StagewireError as error:
            errors.append(error)
        return RunReport()

    _report, status = program.run_job(loaded, WriteJob(None, Path(), work=work), deadline=DEADLINE)
    if errors:
        raise errors[0]
    return (results[0] if results else None), status


def _load(program: Program, configs: Sequence[str]) -> Any:
    loaded = program.load(configs[0], configs[1:])
    if loaded.kind.name != "write-session":
        raise PluginError(f"{configs[0]} is a pipeline of kind {loaded.kind.name!r}; this command needs write-session")
    return loaded


def _file_place(place: str) -> tuple[str, str]:
    export, path = split(place)
    if not path:
        raise click.BadParameter(f"{place!r} names an export and no file in it: EXPORT/PATH")
    return export, path


async def _entries(controller: WriteController, export: str, path: str) -> AsyncIterator[Entry]:
    try:
        after, more = "", True
        while more:
            listing = await controller.list(export, path, after=after)
            for entry in listing.entries:
                yield entry
            more = listing.more and bool(listing.entries)
            after = listing.entries[-1].name if listing.entries else after
    except NotDirectory:
        yield await controller.stat(export, path)


@contextmanager
def _target(file: Path) -> Iterator[BinaryIO]:
    """Open a file beside the one that is asked for, and rename it when the block ends well."""
    if str(file) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {error.strerror}", param_hint="FILE") from error
    try:
        with os.fdopen(descriptor, "wb") as target:
            yield target
        os.chmod(name, 0o644)  # noqa: PTH101 — as a new file has it under the usual umask
        os.replace(name, file)  # noqa: PTH105 — a name in the same directory
    except OSError as error:
        raise StagewireError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 — same


def _line(entry: Entry, *, long_: bool) -> str:
    name = entry.name + ("/" if entry.directory else "")
    return f"{entry.size:>15,}  {_time(entry)}  {name}" if long_ else name


def _time(entry: Entry) -> str:
    return datetime.fromtimestamp(entry.mtime, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
