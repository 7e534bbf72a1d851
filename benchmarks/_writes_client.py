"""A client process of the benchmark of writes: carries files as it is told on its input, one line a request.

    python _writes_client.py ours CONFIG OVERLAY | sink PORT | command PROGRAM ARGUMENT … | aio-pika URL

A request names what to do, the source, the folder of the targets, how many, and how many at a time; the answer is
the seconds that it took.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from stagewire import App, RunReport, StagewireError
from stagewire_writes import HybridWriter, WriteController
from stagewire_writes.pipeline import WriteJob, WritePipeline

MIB = 1024 * 1024
BLOCK, SMALL = 8 * MIB, 64 * 1024
MESSAGES = 4
"""Messages of aio-pika that wait for their confirms at once: as many as a session has batches on their way."""

TRIES, PAUSE = 200, 0.2
"""How often an agent is looked for, and the seconds between two looks."""


class Request(msgspec.Struct):
    """What to carry."""

    op: str
    source: str
    folder: str
    files: int
    parallel: int


Carry = Callable[[Request, str], Awaitable[None]]


async def serve(carry: Carry) -> None:
    """Answer the requests until the input ends."""
    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        request = msgspec.json.decode(line, type=Request)
        names = count()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(request.parallel):
                group.create_task(some(carry, request, names))
        print(json.dumps(time.perf_counter() - began), flush=True)


async def some(carry: Carry, request: Request, names: Any) -> None:
    """Carry one file after the other, until there are as many as were asked for."""
    while (number := next(names)) < request.files:
        await carry(request, f"f{number}")


async def blocks(source: Path) -> AsyncIterator[bytes]:
    """Yield a file's bytes; a small file is read without a thread."""
    if (content := small(source)) is not None:
        yield content
        return
    with await asyncio.to_thread(source.open, "rb") as file:
        while block := await asyncio.to_thread(file.read, BLOCK):
            yield block


def small(source: Path) -> bytes | None:
    """Return what is in a small file."""
    return source.read_bytes() if source.stat().st_size <= SMALL else None


async def put(controller: WriteController, source: Path, name: str) -> None:
    writer = HybridWriter(controller, "files", name)
    async for block in blocks(source):
        await writer.write(block)
    await writer.finish()


async def get(controller: WriteController, name: str, target: Path) -> None:
    entry = await controller.stat("files", name)
    with target.open("wb") as file:
        async with controller.pieces.stream("files", name, entry) as pieces:
            async for piece in pieces:
                await asyncio.to_thread(file.write, piece)


async def ours(config: str, overlay: str) -> None:
    """Serve with a controller, once an agent answers."""

    async def work(pipeline: WritePipeline) -> RunReport:
        controller = pipeline.controller
        await answered(controller)

        async def carry(request: Request, name: str) -> None:
            if request.op == "put":
                await put(controller, Path(request.source), name)
            else:
                await get(controller, name, Path(request.folder, name))

        await serve(carry)
        return RunReport()

    app = App()
    await app.run(app.load([config, overlay]), WriteJob(None, Path(), work=work))


async def answered(controller: WriteController) -> None:
    """Return once an agent lists the export; raise why none does in the end."""
    for left in reversed(range(TRIES)):
        try:
            await controller.list("files", "")
        except StagewireError:
            if not left:
                raise
            await asyncio.sleep(PAUSE)
        else:
            return


async def to_sink(port: str, request: Request, name: str) -> None:
    """Send a file to the bare sink and wait for its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    writer.write(f"{Path(request.folder, name)}\n".encode())
    async for block in blocks(Path(request.source)):
        writer.write(block)
        await writer.drain()
    writer.write_eof()
    await reader.readexactly(4)
    writer.close()
    await writer.wait_closed()


async def by_command(command: list[str], request: Request, name: str) -> None:
    """Let a program copy the file."""
    process = await asyncio.create_subprocess_exec(*command, request.source, Path(request.folder, name))
    if await process.wait():
        raise RuntimeError(f"{command[0]} failed with status {process.returncode}")


async def by_messages(url: str) -> None:
    """Serve with confirmed durable messages of up to 1 MiB, which a consumer acknowledges and drops."""
    from _relay_async import AioPika  # noqa: PLC0415 — the other kinds do without its clients

    subject = AioPika()
    await asyncio.to_thread(subject.open, url, ["bench-messages"])

    async def carry(request: Request, _name: str) -> None:
        body, chunks = await asyncio.to_thread(messages_of, Path(request.source))
        streams = min(MESSAGES, chunks)
        await asyncio.to_thread(subject.transfer, body, streams, chunks // streams)

    await serve(carry)
    await asyncio.to_thread(subject.close)


def messages_of(source: Path) -> tuple[bytes, int]:
    """Return what one message has of a file, and how many such messages the file takes."""
    with source.open("rb") as file:
        return file.read(MIB), max(1, source.stat().st_size // MIB)


def main() -> None:
    kind, *arguments = sys.argv[1:]
    if kind == "ours":
        asyncio.run(ours(*arguments))
    elif kind == "sink":
        asyncio.run(serve(partial(to_sink, arguments[0])))
    elif kind == "command":
        asyncio.run(serve(partial(by_command, arguments)))
    else:
        asyncio.run(by_messages(*arguments))


if __name__ == "__main__":
    main()
