"""Registers the stages of the captions example, and the captioner as a pipeline of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagewire import BuildContext, Extra, Pipeline, Provider, hookimpl
from stagewire_examples.captions.options import (
    HttpOptions,
    MailboxOptions,
    ResponderOptions,
    SheetOptions,
    ThumbnailOptions,
)

if TYPE_CHECKING:  # what needs Pillow or aiohttp is imported when it is built
    from stagewire_examples.captions.asking import Asking
    from stagewire_examples.captions.responder import CaptionerPipeline
    from stagewire_examples.captions.sheet import ContactSheet
    from stagewire_examples.captions.thumbnails import Thumbnails

IMAGES = Extra("images", ("PIL",))
WEB = Extra("images", ("PIL", "aiohttp"))


def make_thumbnails(options: ThumbnailOptions, _context: BuildContext) -> Thumbnails:
    """Build the S role."""
    from stagewire_examples.captions.thumbnails import Thumbnails  # noqa: PLC0415 — see above

    return Thumbnails(options)


def make_mailbox(options: MailboxOptions, context: BuildContext) -> Asking:
    """Build the P role that asks over the pipeline's transport."""
    from stagewire_examples.captions.asking import Asking  # noqa: PLC0415 — see above
    from stagewire_examples.captions.ways import ByMailbox  # noqa: PLC0415

    return Asking(options, ByMailbox(options, context))


def make_http(options: HttpOptions, _context: BuildContext) -> Asking:
    """Build the P role that asks over HTTP."""
    from stagewire_examples.captions.asking import Asking  # noqa: PLC0415 — see above
    from stagewire_examples.captions.ways import ByHttp  # noqa: PLC0415

    return Asking(options, ByHttp(options))


def make_sheet(options: SheetOptions, _context: BuildContext) -> ContactSheet:
    """Build the C role."""
    from stagewire_examples.captions.sheet import ContactSheet  # noqa: PLC0415 — see above

    return ContactSheet(options)


def make_captioner(options: ResponderOptions, context: BuildContext) -> CaptionerPipeline:
    """Build the captioner."""
    from stagewire_examples.captions.responder import CaptionerPipeline  # noqa: PLC0415 — see above

    return CaptionerPipeline(options, context)


@hookimpl
def stagewire_stages() -> list[Provider[object]]:
    """Offer the three roles of ``configs/csp-captions.yaml``."""
    return [
        Provider(
            name="captions.thumbnails",
            summary="Makes thumbnails of the images in a directory.",
            options=ThumbnailOptions,
            factory=make_thumbnails,
            capabilities=frozenset({"csp.producer"}),
            extra=IMAGES,
        ),
        Provider(
            name="captions.mailbox",
            summary="Asks a captioner about each image, over the pipeline's transport.",
            options=MailboxOptions,
            factory=make_mailbox,
            capabilities=frozenset({"csp.requester"}),
            extra=IMAGES,
        ),
        Provider(
            name="captions.http",
            summary="Asks a captioner about each image, over HTTP.",
            options=HttpOptions,
            factory=make_http,
            capabilities=frozenset({"csp.requester"}),
            extra=WEB,
        ),
        Provider(
            name="captions.sheet",
            summary="Writes captioned images and a contact sheet.",
            options=SheetOptions,
            factory=make_sheet,
            capabilities=frozenset({"csp.consumer"}),
            extra=IMAGES,
        ),
    ]


@hookimpl
def stagewire_pipelines() -> list[Provider[Pipeline]]:
    """Offer ``pipeline: captioner``."""
    return [
        Provider(
            name="captioner",
            summary="Answers what is asked about images in a mailbox of its transport, until it is stopped.",
            options=ResponderOptions,
            factory=make_captioner,
            extra=IMAGES,
        )
    ]
