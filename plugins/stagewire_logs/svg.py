"""Plots as SVG that stands in a page by itself: colours come from the page, so that they follow its dark mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 720
"""Units across; the page scales it."""

LEFT, RIGHT, TOP, BOTTOM = 60, 8, 14, 24


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot.

    Attributes:
        name: What it is, for the legend.
        values: One value for each position.
        style: The class that colours it: ``a``, ``b``, ``c`` or ``bad``.
        filled: Whether the area beneath is tinted.
    """

    name: str
    values: Sequence[float]
    style: str
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of the plot that is marked, from one position to another, both from 0 to 1."""

    start: float
    end: float
    name: str


def plot(
    title: str, lines: Sequence[Line], *, labels: tuple[str, str], bands: Sequence[Band] = (), height: int = 150
) -> str:
    """Return lines over time. ``labels`` stand at the beginning and the end of the axis."""
    top = max((value for line in lines for value in line.values), default=0) or 1
    inner_w, inner_h = WIDTH - LEFT - RIGHT, height - TOP - BOTTOM
    parts = [_grid(top, height)]
    for band in bands:
        x, width = LEFT + band.start * inner_w, max(2.0, (band.end - band.start) * inner_w)
        parts.append(
            f'<rect class="band" x="{x:.1f}" y="{TOP}" width="{width:.1f}" height="{inner_h}">'
            f"<title>{escape(band.name)}</title></rect>"
        )
    for line in lines:
        points = [
            (LEFT + inner_w * at / max(1, len(line.values) - 1), TOP + inner_h * (1 - value / top))
            for at, value in enumerate(line.values)
        ]
        parts.append(_path(line, points, TOP + inner_h))
    base = height - 6
    parts += [
        f'<text x="{LEFT}" y="{base}">{escape(labels[0])}</text>',
        f'<text x="{WIDTH - RIGHT}" y="{base}" text-anchor="end">{escape(labels[1])}</text>',
    ]
    legend = "".join(f'<span class="key {line.style}"></span>{escape(line.name)} ' for line in lines)
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(_said(title, lines))}">'
        f"{''.join(parts)}</svg>"
    )
    return f"<figure><figcaption>{escape(title)} <small>{legend}</small></figcaption>{svg}</figure>"


def bars(title: str, values: Mapping[str, float], worded: Mapping[str, str]) -> str:
    """Return horizontal bars, each with its name and, in words, its value."""
    most = max(values.values(), default=0) or 1
    rows = "".join(
        f'<div class="row"><span class="name">{escape(name)}</span>'
        f'<span class="track"><span class="bar" style="width:{100 * value / most:.1f}%"></span></span>'
        f'<span class="value">{escape(worded[name])}</span></div>'
        for name, value in values.items()
    )
    return f'<figure><figcaption>{escape(title)}</figcaption><div class="bars">{rows}</div></figure>'


def _said(title: str, lines: Sequence[Line]) -> str:
    said = "; ".join(f"{line.name} up to {max(line.values, default=0):,.0f}" for line in lines)
    return f"{title}: {said}"


def _grid(top: float, height: int) -> str:
    inner_h = height - TOP - BOTTOM
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = TOP + inner_h * (1 - share)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(top * share)}</text>')
    return "".join(parts)


def _tick(value: float) -> str:
    for below, scale, unit in ((1e4, 1.0, ""), (1e7, 1e3, "k"), (1e10, 1e6, "M")):
        if value < below:
            return f"{value / scale:.4g}{unit}"
    return f"{value:.1e}"


def _path(line: Line, points: Sequence[tuple[float, float]], floor: float) -> str:
    if not points:
        return ""
    course = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = ""
    if line.filled:
        first, last = f"{points[0][0]:.1f},{floor}", f"{points[-1][0]:.1f},{floor}"
        area = f'<polygon class="{line.style} area" points="{first} {course} {last}"/>'
    return f'{area}<polyline class="{line.style}" points="{course}"/>'
