"""The C role: captioned images and the sheet, whichever halves come together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageFont

from stagewire import ConfigError, StageContext
from stagewire.testing import stage_context
from stagewire_examples.captions.drawing import captioned, wrapped
from stagewire_examples.captions.facts import Facts
from stagewire_examples.captions.options import SheetOptions
from stagewire_examples.captions.parts import Caption, Thumbnail
from stagewire_examples.captions.sheet import ContactSheet, Uncaptioned

MakeJpeg = Callable[..., bytes]
FACTS = Facts(width=60, height=40, colours=(), taken="2024-05-17 06:30:00")


def sheet_of(context: StageContext, *pairs: tuple[Thumbnail, Caption]) -> tuple[str, list[str], list[str]]:
    """Consume the pairs; returns the page, what was refused, and the pictures."""

    async def main() -> list[str]:
        sheet, refused = ContactSheet(SheetOptions(title="A <walk>")), []
        await sheet.open(context)
        for t, q in pairs:
            try:
                await sheet.consume(t, q)
            except Uncaptioned as error:
                refused.append(str(error))
        await sheet.close()
        page, pictures = sheet.outputs()
        assert page.bytes == page.path.stat().st_size
        assert pictures.chunks == len(list(pictures.path.iterdir()))
        return refused

    refused = asyncio.run(main())
    folder = context.output_directory
    assert folder is not None
    page = (folder / "contact-sheet.html").read_text()
    return page, refused, sorted(path.name for path in (folder / "captioned").iterdir())


def test_halves_find_each_other_whatever_the_order_of_the_pairs(context: StageContext, make_jpeg: MakeJpeg) -> None:
    t = {name: Thumbnail(name, make_jpeg()) for name in "abc"}
    q = {name: Caption(name, FACTS) for name in "abc"}
    page, refused, pictures = sheet_of(context, (t["a"], q["b"]), (t["b"], q["c"]), (t["c"], q["a"]))
    assert (refused, pictures) == ([], ["a.jpg", "b.jpg", "c.jpg"])
    assert "3 of 3 images" in page
    assert page.count("<img") == 3


def test_what_went_wrong_is_raised_once_and_stands_on_the_sheet(context: StageContext, make_jpeg: MakeJpeg) -> None:
    page, refused, pictures = sheet_of(
        context,
        (Thumbnail("a.jpg", None, "it is <broken>"), Caption("b.jpg", None, "overloaded, asked 3 times", 3)),
        (Thumbnail("b.jpg", make_jpeg()), Caption("a.jpg", FACTS)),
    )
    assert refused == [
        "b.jpg has no caption: overloaded, asked 3 times; a.jpg has no caption: it is <broken>",
    ]
    assert pictures == []
    assert "it is &lt;broken&gt;" in page
    assert "0 of 2 images" in page
    assert "<title>A &lt;walk&gt;</title>" in page


def test_an_image_whose_other_half_never_came_is_on_the_sheet(context: StageContext, make_jpeg: MakeJpeg) -> None:
    page, refused, _ = sheet_of(context, (Thumbnail("a.jpg", make_jpeg()), Caption("b.jpg", FACTS)))
    assert refused == []
    assert "the run ended before it had a caption" in page
    assert "the run ended before it had a thumbnail" in page


def test_a_picture_that_cannot_be_written_is_named(context: StageContext, make_jpeg: MakeJpeg) -> None:
    folder = context.output_directory
    assert folder is not None
    (folder / "captioned" / "a.jpg").mkdir(parents=True)
    t, q = Thumbnail("a", make_jpeg()), Caption("a", FACTS)

    async def main() -> None:
        sheet = ContactSheet(SheetOptions())
        await sheet.open(context)
        with pytest.raises(Uncaptioned, match="a has no caption: it cannot be written"):
            await sheet.consume(t, q)
        await sheet.close()

    asyncio.run(main())
    assert "it cannot be written" in (folder / "contact-sheet.html").read_text()


def test_a_name_is_quoted_as_a_url(context: StageContext, make_jpeg: MakeJpeg) -> None:
    name = 'a "b" #1.jpg'
    page, _, pictures = sheet_of(context, (Thumbnail(name, make_jpeg()), Caption(name, FACTS, attempts=2)))
    assert pictures == [f"{name}.jpg"]
    assert 'src="captioned/a%20%22b%22%20%231.jpg.jpg"' in page
    assert "asked 2 times" in page


def test_without_an_output_directory_there_is_a_clear_error(photos: Path) -> None:
    sheet = ContactSheet(SheetOptions())
    with pytest.raises(ConfigError, match="no output directory"):
        asyncio.run(sheet.open(stage_context(input_directory=photos)))
    asyncio.run(sheet.close())
    assert sheet.outputs() == []


def test_the_caption_is_wrapped_into_a_band_beneath_the_picture(make_jpeg: MakeJpeg, tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(captioned(make_jpeg(size=(200, 100)), "word " * 40))
    with Image.open(path) as image:
        assert image.width == 200
        assert image.height > 200
    font = ImageFont.load_default(13)
    lines = list(wrapped("a few words and incomprehensibilities", 80, font))
    assert " ".join(lines) == "a few words and incomprehensibilities"
    assert all(font.getlength(line) <= 80 or " " not in line for line in lines)
