"""``captions.sheet``, the C role: captioned images and a contact sheet, in the output directory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from stagewire import ConfigError, OutputFile, Problem, StageContext, StagewireError
from stagewire_examples.captions.drawing import captioned
from stagewire_examples.captions.options import SheetOptions
from stagewire_examples.captions.page import page
from stagewire_examples.captions.parts import Caption, Thumbnail

SHEET = "contact-sheet.html"
PICTURES = "captioned"


class Uncaptioned(StagewireError):
    """An image could not be captioned; says why, in as many words as the sheet does."""


@dataclass(slots=True)
class Entry:
    """What is known of one image. ``picture`` is the path of the captioned one, in the output directory."""

    name: str
    thumbnail: Thumbnail | None = None
    caption: Caption | None = None
    picture: str | None = None
    fault: str | None = None

    @property
    def lacking(self) -> str:
        """Why there is no captioned image."""
        halves = {"thumbnail": self.thumbnail, "caption": self.caption}
        reasons = [half.error for half in halves.values() if half is not None and half.error]
        absent = [name for name, half in halves.items() if half is None]
        waits = f"the run ended before it had a {' and a '.join(absent)}" if absent else "the run ended meanwhile"
        return self.fault or "; ".join(reasons) or waits


class ContactSheet:
    """Puts the halves of each image together as they come, for pairs are formed in the order of arrival.

    Args:
        options: The heading.
    """

    def __init__(self, options: SheetOptions) -> None:
        self._title = options.title
        self._folder: Path | None = None
        self._stage = ""
        self._entries: dict[str, Entry] = {}
        self._bytes = 0

    async def open(self, context: StageContext) -> None:
        """Make the folder of the pictures. Raises `ConfigError` when there is nowhere to write to."""
        if context.output_directory is None:
            raise ConfigError([Problem("captions.sheet writes files, and this pipeline gives it no output directory")])
        self._stage = str(context.stage)
        await asyncio.to_thread((context.output_directory / PICTURES).mkdir, exist_ok=True)
        self._folder = context.output_directory

    async def consume(self, t: Thumbnail, q: Caption) -> None:
        """Take the halves, and finish each image that has both now.

        Raises:
            Uncaptioned: An image has both, and one of them says that there is nothing.
        """
        entries = [self._entry(t.name), self._entry(q.name)]
        entries[0].thumbnail = t
        entries[1].caption = q
        ready = {entry.name: entry for entry in entries if entry.thumbnail and entry.caption}
        reasons = [reason for entry in ready.values() if (reason := await self._finish(entry))]
        if reasons:
            raise Uncaptioned("; ".join(reasons))

    async def close(self) -> None:
        """Write the sheet, with what there is. Idempotent, also when `open` failed."""
        if self._folder is not None:
            text = page(self._title, self._entries.values())
            await asyncio.to_thread((self._folder / SHEET).write_text, text, "utf-8")

    def outputs(self) -> list[OutputFile]:
        """Return the sheet, and the folder of the pictures."""
        if self._folder is None:
            return []
        sheet, done = self._folder / SHEET, sum(entry.picture is not None for entry in self._entries.values())
        return [
            OutputFile(sheet, self._stage, len(self._entries), sheet.stat().st_size),
            OutputFile(self._folder / PICTURES, self._stage, done, self._bytes),
        ]

    def _entry(self, name: str) -> Entry:
        return self._entries.setdefault(name, Entry(name))

    async def _finish(self, entry: Entry) -> str | None:
        """Draw the captioned image; returns why it cannot be, if so."""
        assert self._folder is not None
        assert entry.thumbnail is not None
        assert entry.caption is not None
        jpeg, facts = entry.thumbnail.jpeg, entry.caption.facts
        if jpeg is None or facts is None:
            return f"{entry.name} has no caption: {entry.lacking}"
        picture = f"{PICTURES}/{entry.name}.jpg"
        try:
            size = await asyncio.to_thread(_draw, self._folder / picture, jpeg, facts.text)
        except OSError as error:
            entry.fault = f"it cannot be written: {error}"
            return f"{entry.name} has no caption: {entry.lacking}"
        entry.picture, entry.thumbnail = picture, Thumbnail(entry.name, None)
        self._bytes += size
        return None


def _draw(path: Path, jpeg: bytes, text: str) -> int:
    return path.write_bytes(captioned(jpeg, text))
