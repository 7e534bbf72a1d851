"""The captioner and the thumbnails: a service that may not be well, and local work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import ValidationError

from stagewire import Message, StageContext
from stagewire_examples.captions.captioner import Captioner, Reply
from stagewire_examples.captions.options import CaptionerOptions, ServingOptions, ThumbnailOptions
from stagewire_examples.captions.responder import Responder
from stagewire_examples.captions.thumbnails import Thumbnails, make_thumbnail
from stagewire_examples.captions.web import status_of
from stagewire_local.transport import LocalTransport

MakeJpeg = Callable[..., bytes]


def test_it_fails_its_callers_in_the_shares_that_it_is_told_and_the_same_way_each_time(make_jpeg: MakeJpeg) -> None:
    image = make_jpeg()

    async def outcomes() -> list[bool]:
        captioner = Captioner(CaptionerOptions(delay=0, fail=0.2, late=0.3, late_by=0.001))
        replies = [await captioner.answer(image) for _ in range(200)]
        served = captioner.served
        assert served.refused == sum(reply.again for reply in replies)
        assert served.refused + served.answered == 200
        assert 20 < served.refused < 60
        assert 35 < served.late < 85
        return [reply.again for reply in replies]

    assert asyncio.run(outcomes()) == asyncio.run(outcomes())


def test_an_image_that_cannot_be_read_is_not_to_be_asked_about_again() -> None:
    reply = asyncio.run(Captioner(CaptionerOptions(delay=0)).answer(b"nothing"))
    assert (reply.facts, reply.again) == (None, False)
    assert "cannot be read" in str(reply.error)
    assert [status_of(reply), status_of(Reply(error="busy", again=True))] == [422, 503]


def test_shares_of_more_than_one_whole_are_refused() -> None:
    with pytest.raises(ValidationError, match="not be more than 1 together"):
        CaptionerOptions(fail=0.6, late=0.5)


def test_csp12_it_answers_through_a_mailbox_and_a_message_that_is_no_question_harms_nobody(
    make_jpeg: MakeJpeg, context: StageContext
) -> None:
    async def main() -> list[Any]:
        transport = LocalTransport()
        await transport.open()
        batches = transport.batches()
        responder = Responder(batches, "captions", ServingOptions(delay=0, workers=2), context.log)
        responder.start()
        payloads: list[Any] = [{"name": "a", "image": make_jpeg()}, "what?", {"name": "b", "image": make_jpeg()}]
        replies = [await batches.request("captions", Message(payload), timeout=10) for payload in payloads]
        await responder.close()
        await transport.close()
        return [reply.payload for reply in replies]

    first, second, third = asyncio.run(main())
    assert first["facts"] == third["facts"]
    assert "no question" in second["error"]


def test_thumbnails_are_made_in_the_order_of_names_until_there_are_no_more(context: StageContext) -> None:
    async def main() -> list[str]:
        stage = Thumbnails(ThumbnailOptions())
        await stage.open(context)
        names = [(await stage.produce()).name for _ in range(3)]
        with pytest.raises(StopAsyncIteration):
            await stage.produce()
        await stage.close()
        return names

    assert asyncio.run(main()) == ["a.JPG", "b.jpeg", "c.jpg"]


def test_a_thumbnail_keeps_its_proportions_and_stands_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "a.jpg"
    Image.new("RGB", (1000, 500)).save(path, exif=exif)
    thumbnail = make_thumbnail(path, 100)
    assert thumbnail.jpeg is not None
    with Image.open(BytesIO(thumbnail.jpeg)) as image:
        assert image.size == (50, 100)


@pytest.mark.parametrize("data", [b"", b"no image", b"\x89PNG\r\n\x1a\n broken"])
def test_an_image_that_cannot_be_read_makes_a_thumbnail_that_says_so(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(data)
    thumbnail = make_thumbnail(path, 100)
    assert thumbnail.jpeg is None
    assert "cannot be read" in str(thumbnail.error)
