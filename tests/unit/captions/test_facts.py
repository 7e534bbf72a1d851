"""What the captioner says is true."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from stagewire_examples.captions.facts import Facts, NoImage, colour_name, facts_of


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def halves(left: tuple[int, int, int], right: tuple[int, int, int]) -> Image.Image:
    image = Image.new("RGB", (80, 40), left)
    image.paste(right, (50, 0, 80, 40))
    return image


def test_the_dominant_colours_come_with_their_shares() -> None:
    facts = facts_of(encoded(halves((220, 40, 40), (250, 225, 60))))
    assert [(colour.name, colour.rgb) for colour in facts.colours[:2]] == [
        ("red", (220, 40, 40)),
        ("yellow", (250, 225, 60)),
    ]
    assert facts.colours[0].share == pytest.approx(5 / 8, abs=0.02)
    assert (facts.width, facts.height, facts.taken) == (80, 40, None)
    assert facts.text == "Mostly red and yellow, 80 x 40"


@pytest.mark.parametrize("place", ["exif", "main"])
def test_the_date_is_that_of_the_exif_data(place: str) -> None:
    exif = Image.Exif()
    if place == "exif":
        exif.get_ifd(0x8769)[0x9003] = "2024:05:17 06:30:00"
    else:
        exif[0x0132] = "2024:05:17 06:30:00"
    facts = facts_of(encoded(Image.new("RGB", (8, 8)), "JPEG", exif=exif))
    assert facts.taken == "2024-05-17 06:30:00"
    assert facts.text.endswith("taken 2024-05-17 06:30")


@pytest.mark.parametrize("text", ["", "0000:00:00 00:00:00", "yesterday", "    :  :     :  :  "])
def test_a_date_that_is_none_is_left_out(text: str) -> None:
    exif = Image.Exif()
    exif[0x0132] = text
    assert facts_of(encoded(Image.new("RGB", (8, 8)), "JPEG", exif=exif)).taken is None


def test_an_image_that_lies_on_its_side_is_measured_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    facts = facts_of(encoded(Image.new("RGB", (80, 40)), "JPEG", exif=exif))
    assert (facts.width, facts.height) == (40, 80)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK", "I;16"])
def test_every_mode_has_facts(mode: str) -> None:
    kind = "TIFF" if mode in {"CMYK", "I;16"} else "PNG"
    facts = facts_of(encoded(Image.new(mode, (8, 4)), kind))
    assert (facts.width, facts.height) == (8, 4)
    assert Facts.model_validate_json(facts.model_dump_json()) == facts


@pytest.mark.parametrize("data", [b"", b"no image", encoded(Image.new("RGB", (80, 40)), "JPEG")[:-300]])
def test_bytes_that_are_no_image_are_said_to_be_none(data: bytes) -> None:
    with pytest.raises(NoImage, match="cannot be read"):
        facts_of(data)


@pytest.mark.parametrize(
    ("rgb", "name"), [((0, 0, 0), "black"), ((240, 245, 250), "white"), ((250, 150, 40), "orange")]
)
def test_a_colour_has_the_name_of_the_nearest(rgb: tuple[int, int, int], name: str) -> None:
    assert colour_name(*rgb) == name
