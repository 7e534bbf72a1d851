"""How chunks become bytes of a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import msgspec

_BY_ENDING = {
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".wav": "wav",
    ".bin": "bytes",
    ".raw": "bytes",
    ".pcm": "bytes",
}

_LINE_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

Encode = Callable[[Any], bytes]


def format_of(file: str, wanted: str) -> str | None:
    """Return the format of a file: the one that is wanted or, for ``auto``, by its ending; ``None``: by its chunks."""
    return wanted if wanted != "auto" else _BY_ENDING.get(PurePath(file).suffix.lower())


def guess(chunk: Any) -> str:
    """Return the format that suits a chunk."""
    if isinstance(chunk, str):
        return "text"
    return "bytes" if _is_buffer(chunk) else "jsonl"


def encode_text(chunk: Any) -> bytes:
    """Return a chunk as one line. Line breaks inside it become spaces. Raises `TypeError` unless it is a str."""
    if not isinstance(chunk, str):
        raise TypeError(f"a text file takes str, and the chunk is {type(chunk).__name__}: choose another format")
    line = _LINE_BREAK.sub(" ", chunk.rstrip("\r\n"))
    return f"{line}\n".encode(errors="surrogatepass")


def encode_json(chunk: Any) -> bytes:
    """Return a chunk as one line of JSON; bytes become base64. Raises `TypeError` for what JSON cannot say."""
    return msgspec.json.encode(chunk) + b"\n"


def encode_bytes(chunk: Any) -> bytes:
    """Return the bytes of a buffer, or of a str in UTF-8. Raises `TypeError` for anything else."""
    if isinstance(chunk, bytes):
        return chunk
    if isinstance(chunk, str):
        return chunk.encode()
    if _is_buffer(chunk):
        return memoryview(chunk).tobytes()
    raise TypeError(f"a file of bytes takes buffers, and the chunk is {type(chunk).__name__}: choose another format")


def encode_sound(chunk: Any) -> bytes:
    """Return the bytes of a buffer of 16-bit samples. Raises `TypeError` for anything else."""
    if _is_buffer(chunk):
        return encode_bytes(chunk)
    raise TypeError(
        f"a wav file takes buffers of 16-bit samples, and the chunk is {type(chunk).__name__}:"
        " choose another format, or the stage that makes the sound"
    )


ENCODERS: dict[str, Encode] = {"text": encode_text, "jsonl": encode_json, "bytes": encode_bytes, "wav": encode_sound}


def _is_buffer(chunk: Any) -> bool:
    try:
        memoryview(chunk).release()
    except TypeError:
        return False
    return True
