"""The P role: every image has a Q in the end, whatever the captioner does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stagewire import ConfigError, Permanent, Retryable, StageContext
from stagewire.testing import stage_context
from stagewire_examples.captions.asking import Asking
from stagewire_examples.captions.options import AskingOptions
from stagewire_examples.captions.parts import Caption

FACTS = {"facts": {"width": 1, "height": 2, "colours": []}}
OPTIONS = AskingOptions(timeout=1, attempts=3, backoff=0.001)

Answer = Callable[[str, int], Awaitable[Any]]


class Play:
    """A way to a captioner that the test plays: it says what each attempt at each image leads to."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked: list[str] = []
        self.closed = False

    async def open(self, _log: Any) -> None: ...

    async def request(self, name: str, _image: bytes, _timeout: float) -> Any:
        self.asked.append(name)
        return await self._answer(name, self.asked.count(name))

    async def close(self) -> None:
        self.closed = True


async def ask_all(way: Play, context: StageContext) -> list[Caption]:
    asking = Asking(OPTIONS, way)
    await asking.open(context)
    captions = []
    try:
        while True:
            captions.append(await asking.receive(await asking.send()))
    except StopAsyncIteration:
        return captions
    finally:
        await asking.close()
        assert way.closed


def test_every_image_is_asked_about_once_in_the_order_of_names(context: StageContext) -> None:
    async def answer(_name: str, _attempt: int) -> Any:
        return FACTS

    way = Play(answer)
    captions = asyncio.run(ask_all(way, context))
    assert way.asked == [caption.name for caption in captions] == ["a.JPG", "b.jpeg", "c.jpg"]
    assert all(caption.facts and caption.attempts == 1 for caption in captions)


@pytest.mark.parametrize("again", [{"error": "overloaded", "again": True}, Retryable("no reply")])
def test_an_answer_that_may_come_later_is_asked_for_again(context: StageContext, again: Any) -> None:
    async def answer(name: str, attempt: int) -> Any:
        if name == "b.jpeg" and attempt < 3:
            if isinstance(again, Exception):
                raise again
            return again
        return FACTS

    captions = asyncio.run(ask_all(Play(answer), context))
    assert [(caption.attempts, caption.error) for caption in captions] == [(1, None), (3, None), (1, None)]


@pytest.mark.parametrize(
    ("reply", "attempts", "reason"),
    [
        ({"error": "overloaded", "again": True}, 3, "overloaded, asked 3 times"),
        ({"error": "no image"}, 1, "no image"),
        (Permanent("too large"), 1, "Permanent: too large"),
        (["what"], 1, "cannot be understood"),
    ],
)
def test_an_image_without_an_answer_has_a_q_that_says_why(
    context: StageContext, reply: Any, attempts: int, reason: str
) -> None:
    async def answer(_name: str, _attempt: int) -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    captions = asyncio.run(ask_all(Play(answer), context))
    assert [caption.attempts for caption in captions] == [attempts] * 3
    assert all(caption.facts is None and reason in str(caption.error) for caption in captions)


def test_an_image_that_cannot_be_read_has_a_q_too(context: StageContext, photos: Path) -> None:
    async def answer(name: str, _attempt: int) -> Any:
        (photos / "b.jpeg").unlink(missing_ok=True)
        return FACTS

    captions = asyncio.run(ask_all(Play(answer), context))
    assert [caption.facts is None for caption in captions] == [False, True, False]


def test_closing_ends_what_is_still_asked(context: StageContext) -> None:
    async def answer(_name: str, _attempt: int) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        asking = Asking(OPTIONS, Play(answer))
        await asking.open(context)
        ticket = await asking.send()
        await asyncio.sleep(0)
        await asking.close()
        assert ticket.cancelled()

    asyncio.run(main())


def test_a_receive_that_is_cancelled_ends_the_asking(context: StageContext) -> None:
    async def answer(_name: str, _attempt: int) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        asking = Asking(OPTIONS, Play(answer))
        await asking.open(context)
        ticket = await asking.send()
        receiving = asyncio.create_task(asking.receive(ticket))
        await asyncio.sleep(0)
        receiving.cancel()
        await asyncio.wait([receiving])
        assert ticket.cancelled()
        await asking.close()

    asyncio.run(main())


@pytest.mark.parametrize("directory", [None, "empty"])
def test_a_run_without_images_says_what_to_name(tmp_path: Path, directory: str | None) -> None:
    folder = tmp_path / directory if directory else None
    if folder:
        folder.mkdir()
    with pytest.raises(ConfigError, match="--input"):
        asyncio.run(ask_all(Play(None), stage_context(input_directory=folder)))  # type: ignore[arg-type]
