"""A bare asyncio socket sink: takes a path and then a file's bytes, checksums and writes them, answers the CRC-32."""

from __future__ import annotations

import asyncio
import zlib

BLOCK = 1024 * 1024


async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    target = (await reader.readline()).decode().strip()
    crc = 0
    with await asyncio.to_thread(open, target, "wb") as file:
        while block := await reader.read(BLOCK):
            crc = zlib.crc32(block, crc)
            file.write(block)
    writer.write(crc.to_bytes(4, "big"))
    await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(take, "127.0.0.1", 0, limit=BLOCK)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
