"""The frame of the HTML report: its style, light and dark, and how cells are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root{--bg:#ffffff;--card:#f5f7fa;--fg:#1b2430;--dim:#55606e;--line:#d5dbe3;--a:#1f6fd1;--b:#b3591b;--c:#2b7a4b;
--bad:#b3261e;--warn:#7a5200;--ok:#1f6b3a;--tint:.14}
@media(prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1b212a;--fg:#e5eaf1;--dim:#a3aebc;--line:#333d4a;
--a:#6cb0ff;--b:#f0a35e;--c:#6fd498;--bad:#ff8a80;--warn:#f2c14e;--ok:#7ddb9c;--tint:.2}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1080px;padding:16px;background:var(--bg);color:var(--fg);
font:15px/1.45 system-ui,sans-serif}h1{font-size:1.25rem;margin:0}h2{font-size:1.05rem;margin:28px 0 8px}
p{margin:4px 0}.dim,small,figcaption small{color:var(--dim);font-weight:400}code{overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:8px;margin:12px 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:8px 12px;min-width:0}
.card b{display:block;font-size:1.25rem;overflow-wrap:anywhere}.wide{grid-column:1/-1}
.wide b{font-size:1.1rem}.card.bad b,.bad-text{color:var(--bad)}
.warn-text{color:var(--warn)}.ok-text{color:var(--ok)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:4px 10px 4px 0;
vertical-align:top;border-bottom:1px solid var(--line);overflow-wrap:break-word}
th{color:var(--dim);font-weight:600;white-space:nowrap}td{max-width:26rem}
ul.findings{list-style:none;margin:0;padding:0}.findings .dim{white-space:nowrap}
.findings li{padding:6px 0;border-bottom:1px solid var(--line);
overflow-wrap:break-word}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
figure{margin:8px 0 16px}figcaption{font-weight:600;margin-bottom:4px}svg{width:100%;height:auto;display:block}
svg text{fill:var(--dim);font:11px system-ui,sans-serif}.grid{stroke:var(--line);stroke-width:1}
polyline{fill:none;stroke-width:1.8}polyline.a{stroke:var(--a)}polyline.b{stroke:var(--b)}polyline.c{stroke:var(--c)}
polyline.bad{stroke:var(--bad)}.area{opacity:var(--tint)}.area.a{fill:var(--a)}.area.b{fill:var(--b)}
.area.c{fill:var(--c)}
.band{fill:var(--bad);opacity:.22}.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;
margin:0 .3em 0 .8em}
.key.a{background:var(--a)}.key.b{background:var(--b)}.key.c{background:var(--c)}.key.bad{background:var(--bad)}
.row{display:grid;grid-template-columns:minmax(80px,22%) 1fr minmax(70px,auto);gap:8px;align-items:center;margin:3px 0}
.name{overflow-wrap:anywhere}.track{background:var(--card);height:14px;border-radius:3px}
.bar{display:block;height:100%;background:var(--a);border-radius:3px;min-width:2px}
.value{text-align:right;font-variant-numeric:tabular-nums}
@media(max-width:520px){body{padding:10px}.cards{grid-template-columns:1fr 1fr}svg text{font-size:18px}}
"""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page asks for nothing from anywhere, and says so."""


def page(title: str, body: Iterable[str]) -> str:
    """Return a whole HTML document that needs nothing beside itself."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def card(name: str, value: str, below: str = "", *, style: str = "") -> str:
    """Return one figure with its name."""
    more = f'<span class="dim">{escape(below)}</span>' if below else ""
    return f'<div class="card {style}"><span class="dim">{escape(name)}</span><b>{escape(value)}</b>{more}</div>'


def section(title: str, *parts: str) -> str:
    """Return a part of the page with its heading; nothing when there is nothing in it."""
    inner = "".join(parts)
    return f"<section><h2>{escape(title)}</h2>{inner}</section>" if inner else ""


def html_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> str:
    """Return a table that scrolls by itself on a narrow screen; its last ``numbers`` columns are numbers."""
    lines = list(rows)
    if not lines:
        return ""
    first = len(heads) - numbers

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' scope=col' if tag == 'th' else ''}{' class=n' if at >= first else ''}>{escape(cell)}</{tag}>"
            for at, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in lines)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table></div>"
    )
