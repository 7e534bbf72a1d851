"""What travels: the two halves of a captioned image, and the captioner's reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagewire import ConfigError, Problem, StageContext

if TYPE_CHECKING:
    from pathlib import Path

    from stagewire_examples.captions.facts import Facts

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp"})
"""Files that are taken for images."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """T. The small picture as JPEG; ``None`` with the reason when there is none."""

    name: str
    jpeg: bytes | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Caption:
    """Q. What the captioner said; ``None`` with the reason when it said nothing. ``attempts``: how often it was asked.

    Every image has a T and a Q, also when something went wrong with it: else the halves of other images would be left
    over, since pairs are formed in the order of arrival and not by image.
    """

    name: str
    facts: Facts | None
    error: str | None = None
    attempts: int = 1


def images_of(context: StageContext) -> list[Path]:
    """Return the images of the directory that ``--input`` names, by name.

    Raises:
        ConfigError: There is no directory, or no image in it.
    """
    directory = context.input_directory
    if directory is None:
        raise ConfigError([Problem("this pipeline reads a directory of images: name it with --input DIR")])
    images = sorted(path for path in directory.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    if not images:
        raise ConfigError([Problem(f"--input {directory}: there is no image in it ({', '.join(sorted(SUFFIXES))})")])
    return images
