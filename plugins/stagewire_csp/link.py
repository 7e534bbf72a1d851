"""What lies on a shelf carries its own two links, and they tell whether it lies there."""

from __future__ import annotations


class Link:
    """Its neighbours are ``FRESH`` until it is first linked, and ``LOOSE`` after it was taken out."""

    __slots__ = ("after", "before")

    after: Link
    before: Link

    @property
    def linked(self) -> bool:
        """Whether it lies on a shelf now."""
        return self.after is not FRESH and self.after is not LOOSE


FRESH = Link()
"""What the links of something that was never on a shelf point to."""

LOOSE = Link()
"""What the links of something that was taken from its shelf point to."""
