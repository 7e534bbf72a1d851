"""Blocking code that a process of its own can import."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from pydantic import SecretStr

from stagewire import BlockingRequest, Options, StageContext


class Marks(Options):
    marks: int = 1
    secret: SecretStr = SecretStr("none")


def shout(request: BlockingRequest, options: Marks) -> Iterator[str]:
    """Say it louder."""
    for chunk in request.chunks:
        yield chunk.upper() + "!" * options.marks


def tell_secret(_request: BlockingRequest, options: Marks) -> str:
    return options.secret.get_secret_value()


def count(request: BlockingRequest) -> int:
    return sum(1 for _chunk in request.chunks)


def nothing(request: BlockingRequest) -> None:
    for _chunk in request.chunks:
        pass


def inputs(request: BlockingRequest) -> list[Any]:
    return [request.id, request.prompt, list(request.inputs), {k: list(v) for k, v in request.inputs_by_stage.items()}]


def process_id(_request: BlockingRequest) -> int:
    sys.stdout.write("this goes to standard error\n")
    return os.getpid()


def die(_request: BlockingRequest) -> None:
    os._exit(3)


def fail(_request: BlockingRequest) -> Iterator[str]:
    yield "before"
    raise ValueError("boom")


def leave(_request: BlockingRequest) -> Iterator[str]:
    yield "before"
    sys.exit(3)


def unsendable(_request: BlockingRequest) -> object:
    return object()


def sleep_long(_request: BlockingRequest) -> Iterator[int]:
    yield 1
    time.sleep(0.2)
    yield 2


class Opened:
    """A class with plain methods."""

    def __init__(self, options: Marks) -> None:
        self._marks = options.marks
        self.stage: object = None

    def open(self, context: StageContext) -> None:
        self.stage = context.stage

    def process(self, request: BlockingRequest) -> Iterator[str]:
        for chunk in request.chunks:
            yield f"{self.stage}: {chunk}{'!' * self._marks}"

    def close(self) -> None:
        self.stage = None


class Unmakeable:
    def __init__(self) -> None:
        raise RuntimeError("no such device")

    def process(self, request: BlockingRequest) -> None: ...
