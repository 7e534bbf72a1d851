"""What is asked of the captioner over a mailbox."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Question(BaseModel):
    """The image's name and the file as it is."""

    model_config = ConfigDict(frozen=True)

    name: str
    image: bytes
