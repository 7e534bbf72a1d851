from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from stagewire import StageContext
from stagewire.testing import stage_context

if os.environ.get("CI") != "true" and importlib.util.find_spec("PIL") is None:
    collect_ignore_glob = ["test_*.py"]  # pip install "stagewire[images]"


def jpeg(colour: tuple[int, int, int] = (20, 30, 105), size: tuple[int, int] = (60, 40)) -> bytes:
    from PIL import Image  # noqa: PLC0415 — this file is read where there is no Pillow, too

    out = BytesIO()
    Image.new("RGB", size, colour).save(out, "JPEG")
    return out.getvalue()


@pytest.fixture
def make_jpeg() -> Callable[..., bytes]:
    return jpeg


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A directory with three images and a text."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("c.jpg", "a.JPG", "b.jpeg"):
        (folder / name).write_bytes(jpeg())
    (folder / "notes.txt").write_text("no image")
    return folder


@pytest.fixture
def context(photos: Path, tmp_path: Path) -> StageContext:
    output = tmp_path / "out"
    output.mkdir()
    return stage_context("role", input_directory=photos, output_directory=output)
