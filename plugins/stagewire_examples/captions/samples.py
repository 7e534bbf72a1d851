"""Makes photo-like images to try the example with: ``python -m stagewire_examples.captions.samples DIR --count 24``."""

from __future__ import annotations

import argparse
import random
from datetime import datetime, timedelta
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

_EXIF_IFD, _TAKEN = 0x8769, 0x9003
_FIRST = datetime(2024, 5, 17, 6, 30)  # noqa: DTZ001 — EXIF has no zone

Colour = tuple[int, int, int]


def make_samples(directory: Path, count: int, *, seed: int = 1, long_side: int = 1200) -> list[Path]:
    """Make so many JPEG files: a sky, a ground and a few blurred shapes, with the EXIF date of a walk."""
    dice = random.Random(seed)  # noqa: S311 — chance, not secrets
    directory.mkdir(parents=True, exist_ok=True)
    return [_save(directory / f"photo-{number:03}.jpg", number, dice, long_side) for number in range(1, count + 1)]


def _save(path: Path, number: int, dice: random.Random, long_side: int) -> Path:
    size = (long_side, long_side * 2 // 3)
    image = _scene(size if dice.random() < 0.75 else size[::-1], dice)  # noqa: PLR2004 — three in four lie
    exif = Image.Exif()
    exif.get_ifd(_EXIF_IFD)[_TAKEN] = f"{_FIRST + timedelta(minutes=7 * number):%Y:%m:%d %H:%M:%S}"
    image.save(path, "JPEG", quality=85, exif=exif)
    return path


def _scene(size: tuple[int, int], dice: random.Random) -> Image.Image:
    width, height = size
    horizon = round(height * dice.uniform(0.35, 0.7))
    image = _gradient((width, horizon), _colour(dice), _colour(dice))
    whole = Image.new("RGB", size)
    whole.paste(image, (0, 0))
    whole.paste(_gradient((width, height - horizon), _colour(dice), _colour(dice)), (0, horizon))
    pen = ImageDraw.Draw(whole)
    for _ in range(dice.randint(2, 6)):
        x, y, radius = dice.randrange(width), dice.randrange(height), dice.randrange(height // 20, height // 5)
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_colour(dice))
    return whole.filter(ImageFilter.GaussianBlur(width / 150))


def _gradient(size: tuple[int, int], top: Colour, bottom: Colour) -> Image.Image:
    column = Image.new("RGB", (1, 2))
    column.putpixel((0, 0), top)
    column.putpixel((0, 1), bottom)
    return column.resize(size, Image.Resampling.BILINEAR)


def _colour(dice: random.Random) -> Colour:
    return dice.randrange(256), dice.randrange(256), dice.randrange(256)


def main() -> None:
    """Make them."""
    parser = argparse.ArgumentParser(description="Make photo-like images")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    make_samples(arguments.directory, arguments.count, seed=arguments.seed)


if __name__ == "__main__":
    main()
