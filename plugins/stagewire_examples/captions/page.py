"""The contact sheet as HTML: one file that needs nothing but the pictures beside it. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from stagewire_examples.captions.facts import Facts
    from stagewire_examples.captions.sheet import Entry

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem; color: #282828; background: #f4f4f1; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); gap: 1.25rem; }
figure { margin: 0; padding: .75rem; background: #fff; border-radius: 6px; box-shadow: 0 1px 3px #0003; }
figure img { display: block; max-width: 100%; margin: 0 auto; }
figcaption { margin-top: .6rem; overflow-wrap: anywhere; }
figcaption small { color: #707070; display: block; }
.missing { background: #fdf3f1; }
.missing figcaption b { color: #a3321f; }
.swatches { display: flex; height: 10px; margin-top: .5rem; border-radius: 3px; overflow: hidden; }
"""


def page(title: str, entries: Iterable[Entry]) -> str:
    """Return the sheet; images without a caption are on it, with the reason."""
    ordered = sorted(entries, key=lambda entry: entry.name)
    done = sum(entry.picture is not None for entry in ordered)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head>",
            f"<body><h1>{escape(title)}</h1>",
            f"<p>{done} of {len(ordered)} images have a caption.</p><main>",
            *(figure for entry in ordered for figure in _figure(entry)),
            "</main></body></html>\n",
        ]
    )


def _figure(entry: Entry) -> Iterator[str]:
    name = escape(entry.name)
    if entry.picture is None or entry.caption is None or entry.caption.facts is None:
        yield f'<figure class="missing"><figcaption><b>{name}</b>{escape(entry.lacking)}</figcaption></figure>'
        return
    facts = entry.caption.facts
    yield f'<figure><img src="{escape(quote(entry.picture))}" alt="{escape(facts.text)}" loading="lazy">'
    yield '<div class="swatches">'
    for colour in facts.colours:
        red, green, blue = colour.rgb
        words = escape(f"{colour.name}, {colour.share:.0%}")
        yield f'<span title="{words}" style="flex:{colour.share:.3f};background:rgb({red} {green} {blue})"></span>'
    shares = ", ".join(f"{share:.0%} {name}" for name, share in _shares(facts).items())
    asked = "" if entry.caption.attempts == 1 else f" · asked {entry.caption.attempts} times"
    yield f"</div><figcaption><b>{name}</b><small>{escape(shares)}{asked}</small></figcaption></figure>"


def _shares(facts: Facts) -> dict[str, float]:
    shares: dict[str, float] = {}
    for colour in facts.colours:
        shares[colour.name] = shares.get(colour.name, 0) + colour.share
    return shares
