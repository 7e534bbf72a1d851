"""What can be said of an image for certain: its size, its dominant colours, when it was taken. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from io import BytesIO

from PIL import Image, ImageOps
from pydantic import BaseModel, ConfigDict, Field

SAMPLE = 64
"""Colours are counted in a copy of at most so many pixels a side."""

COLOURS = 4
"""How many groups the colours are put into."""

MENTIONED = 0.15
"""The share of an image that makes a colour worth a word."""

_EXIF_IFD = 0x8769
_TAKEN = (0x9003, 0x0132)
"""DateTimeOriginal, in the Exif part, and DateTime, which is in the main part."""

_NAMES = {
    "black": (0, 0, 0),
    "dark grey": (72, 72, 72),
    "grey": (128, 128, 128),
    "light grey": (200, 200, 200),
    "white": (255, 255, 255),
    "dark red": (120, 16, 16),
    "red": (220, 40, 40),
    "pink": (250, 160, 180),
    "brown": (120, 72, 36),
    "orange": (245, 140, 30),
    "beige": (225, 205, 165),
    "yellow": (250, 225, 60),
    "olive": (125, 125, 40),
    "dark green": (20, 85, 35),
    "green": (55, 170, 65),
    "light green": (155, 220, 145),
    "teal": (25, 130, 130),
    "turquoise": (70, 210, 205),
    "sky blue": (135, 195, 240),
    "blue": (45, 95, 215),
    "dark blue": (20, 30, 105),
    "purple": (115, 45, 145),
    "violet": (165, 120, 220),
    "magenta": (215, 55, 165),
}


class NoImage(ValueError):
    """These bytes are no image that can be read."""


class Colour(BaseModel):
    """A dominant colour and its share of the image."""

    model_config = ConfigDict(frozen=True)

    name: str
    rgb: tuple[int, int, int]
    share: float = Field(ge=0, le=1)


class Facts(BaseModel):
    """What is known of an image. ``taken`` is ``YYYY-MM-DD HH:MM:SS``, in the camera's time, from its EXIF data."""

    model_config = ConfigDict(frozen=True)

    width: int
    height: int
    colours: tuple[Colour, ...]
    taken: str | None = None

    @property
    def text(self) -> str:
        """The caption: one line."""
        named = dict.fromkeys(colour.name for colour in self.colours if colour.share >= MENTIONED)
        colours = " and ".join(list(named)[:2]) or "many colours"
        taken = f", taken {self.taken[:16]}" if self.taken else ""
        return f"Mostly {colours}, {self.width} x {self.height}{taken}"


def facts_of(data: bytes) -> Facts:
    """Look at an encoded image. Raises `NoImage`."""
    try:
        with Image.open(BytesIO(data)) as image:
            taken = _taken(image)
            upright = ImageOps.exif_transpose(image)
            return Facts(width=upright.width, height=upright.height, colours=tuple(_colours(upright)), taken=taken)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise NoImage(f"the image cannot be read: {error}") from error


def _colours(image: Image.Image) -> Iterator[Colour]:
    sample = image.convert("RGB")
    sample.thumbnail((SAMPLE, SAMPLE))
    grouped = sample.quantize(COLOURS)
    palette = grouped.getpalette() or []
    pixels = sample.width * sample.height
    counts = sorted(((count, index) for index, count in enumerate(grouped.histogram()) if count), reverse=True)
    for count, index in counts:
        red, green, blue = palette[3 * index : 3 * index + 3]
        yield Colour(name=colour_name(red, green, blue), rgb=(red, green, blue), share=round(count / pixels, 3))


def colour_name(red: int, green: int, blue: int) -> str:
    """Return the name of the nearest colour that has one."""

    def distance(name: str) -> int:
        r, g, b = _NAMES[name]
        return 2 * (red - r) ** 2 + 4 * (green - g) ** 2 + 3 * (blue - b) ** 2  # the eye's weights, roughly

    return min(_NAMES, key=distance)


def _taken(image: Image.Image) -> str | None:
    exif = image.getexif()
    for text in (exif.get_ifd(_EXIF_IFD).get(_TAKEN[0]), exif.get(_TAKEN[1])):
        try:
            return str(datetime.strptime(str(text).strip("\0 "), "%Y:%m:%d %H:%M:%S"))  # noqa: DTZ007 — EXIF has no zone
        except ValueError:
            continue
    return None
