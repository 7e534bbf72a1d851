"""What the blocks of the captions example take."""

from __future__ import annotations

from typing import Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from stagewire import Options

MAILBOX = "captions"
PORT = 8970


class ThumbnailOptions(Options):
    """Options of ``captions.thumbnails``."""

    size: int = Field(240, ge=16, le=2_000, description="The longer side of a thumbnail, in pixels.")


class SheetOptions(Options):
    """Options of ``captions.sheet``."""

    title: str = Field("Contact sheet", min_length=1, description="The heading of the sheet.")


class CaptionerOptions(Options):
    """How the captioner serves. The shares let a pipeline be tried against a service that is not well."""

    delay: NonNegativeFloat = Field(0.2, description="Seconds that it takes over an image.")
    fail: float = Field(0.0, ge=0, le=1, description="The share of requests that it refuses, to be asked again.")
    late: float = Field(0.0, ge=0, le=1, description="The share of requests that it answers late.")
    late_by: NonNegativeFloat = Field(5.0, description="Seconds by which a late answer is late.")
    seed: int = Field(1, description="Decides which requests it refuses and which it answers late.")

    @model_validator(mode="after")
    def _shares_are_of_one_whole(self) -> Self:
        if self.fail + self.late > 1:
            raise ValueError(f"fail ({self.fail}) and late ({self.late}) must not be more than 1 together")
        return self


class ServingOptions(CaptionerOptions):
    """How the captioner serves a mailbox."""

    workers: PositiveInt = Field(16, description="How many requests it works on at once.")


class ResponderOptions(ServingOptions):
    """The sections of ``pipeline: captioner``."""

    mailbox: str = Field(MAILBOX, min_length=1, description="The mailbox that it serves.")


class AskingOptions(Options):
    """What both requesters take."""

    timeout: PositiveFloat = Field(5.0, description="Seconds that an answer may take.")
    attempts: PositiveInt = Field(4, description="How often an image is asked about before it goes without a caption.")
    backoff: PositiveFloat = Field(0.2, description="Seconds before an image is asked about again; they double.")


class MailboxOptions(AskingOptions):
    """Options of ``captions.mailbox``."""

    mailbox: str = Field(MAILBOX, min_length=1, description="The mailbox that the captioner serves.")
    captioner: ServingOptions | None = Field(
        None, description="Serve that mailbox in this process, too. Left out: somebody else does."
    )


class HttpOptions(AskingOptions):
    """Options of ``captions.http``."""

    url: str = Field(f"http://127.0.0.1:{PORT}/caption", pattern=r"^https?://", description="Where to post images.")
    connections: PositiveInt = Field(64, description="Connections at once.")
