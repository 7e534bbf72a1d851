"""``captions.thumbnails``, the S role: local heavy work, by Pillow on threads."""

from __future__ import annotations

import asyncio
from collections import deque
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageOps

from stagewire import StageContext
from stagewire_examples.captions.options import ThumbnailOptions
from stagewire_examples.captions.parts import Thumbnail, images_of

QUALITY = 85


class Thumbnails:
    """Makes one thumbnail of each image, in the order of their names. How many at once is the runtime's to say."""

    def __init__(self, options: ThumbnailOptions) -> None:
        self._size = options.size
        self._images: deque[Path] = deque()

    async def open(self, context: StageContext) -> None:
        """List the images. Raises `ConfigError` when there are none."""
        self._images.extend(images_of(context))

    async def produce(self) -> Thumbnail:
        """Make the next thumbnail. An image that cannot be read makes one that says so."""
        if not self._images:
            raise StopAsyncIteration
        return await asyncio.to_thread(make_thumbnail, self._images.popleft(), self._size)

    async def close(self) -> None:
        """Do nothing: threads end with their thumbnail."""


def make_thumbnail(path: Path, size: int) -> Thumbnail:
    """Return the image upright, at most ``size`` pixels wide and high."""
    try:
        with Image.open(path) as image:
            image.draft("RGB", (2 * size, 2 * size))  # JPEG decodes at a fraction of its size at a fraction of the cost
            small = ImageOps.exif_transpose(image).convert("RGB")
            small.thumbnail((size, size))
            jpeg = BytesIO()
            small.save(jpeg, "JPEG", quality=QUALITY)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return Thumbnail(path.name, None, f"it cannot be read: {error}")
    return Thumbnail(path.name, jpeg.getvalue())
