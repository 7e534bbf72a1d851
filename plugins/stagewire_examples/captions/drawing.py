"""A picture with its caption beneath. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

MARGIN = 8
LETTERS = 13
"""Pixels of the letters' height."""

NARROWEST = 160
"""Pixels of the band's width at least, so that a caption has room beneath a narrow picture."""

PAPER, INK = (250, 250, 247), (40, 40, 40)


def captioned(jpeg: bytes, text: str) -> bytes:
    """Return the picture with the text in a band beneath it, as JPEG."""
    font = ImageFont.load_default(LETTERS)
    with Image.open(BytesIO(jpeg)) as picture:
        width = max(picture.width, NARROWEST)
        lines = list(wrapped(text, width - 2 * MARGIN, font))
        step = LETTERS + 4
        whole = Image.new("RGB", (width, picture.height + len(lines) * step + 2 * MARGIN), PAPER)
        whole.paste(picture, ((width - picture.width) // 2, 0))
        pen = ImageDraw.Draw(whole)
        for number, line in enumerate(lines):
            pen.text((MARGIN, picture.height + MARGIN + number * step), line, fill=INK, font=font)
    out = BytesIO()
    whole.save(out, "JPEG", quality=90)
    return out.getvalue()


def wrapped(text: str, width: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> Iterator[str]:
    """Yield the lines of a text that is at most ``width`` pixels wide; a word is never cut."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and font.getlength(longer) > width:
            yield line
            longer = word
        line = longer
    if line:
        yield line
