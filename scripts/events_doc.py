"""Write docs/events.md from the catalogue of events and the events that the plugins here define for themselves.

python scripts/events_doc.py [--check]
"""

import argparse
import importlib
import pathlib
import pkgutil
import sys
from collections import defaultdict

from stagewire.events import CATALOGUE, COMMON_FIELDS, Event

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "events.md"
PLUGINS_WITH_EVENTS = ("stagewire_examples",)

HEAD = """# Events

Every line of a log has `timestamp` (UTC, ISO 8601), `level`, `event` and `pipeline`. Any may have the ids that apply:
{common}; `exception`
holds a stack trace as data.

Names are stable: a name keeps its meaning, and one that is no longer emitted is not used for anything else. The list is
made from `stagewire.events` by `scripts/events_doc.py`. A plugin makes `Event` objects of its own and emits those; such
names begin with the plugin's own area.
"""


def own_events(package: str) -> list[Event]:
    """Return the events that the modules of a package define."""
    root = importlib.import_module(package)
    names = [each.name for each in pkgutil.iter_modules(root.__path__, f"{package}.")]
    modules = [importlib.import_module(name) for name in names]
    found = {each.name: each for module in modules for each in vars(module).values() if isinstance(each, Event)}
    return [event for name, event in sorted(found.items()) if name not in CATALOGUE]


def table(events: list[Event]) -> list[str]:
    """Return events as a Markdown table."""
    rows = []
    for event in events:
        fields = " ".join(f"`{name}`" for name in sorted(event.fields))
        rows.append(f"| `{event.name}` | {event.level} | {fields} | {event.summary} |")
    return ["| event | level | fields | |", "|---|---|---|---|", *rows]


def document() -> str:
    """Return the whole document."""
    common = ", ".join(f"`{name}`" for name in sorted(COMMON_FIELDS - {"exc_info"}))
    areas: dict[str, list[Event]] = defaultdict(list)
    for event in CATALOGUE.values():
        areas[event.name.partition(".")[0]].append(event)
    parts = [HEAD.format(common=common)]
    for area, events in areas.items():
        parts += [f"## {area}", "", *table(events), ""]
    for package in PLUGINS_WITH_EVENTS:
        parts += [f"## Of `{package}`", "", *table(own_events(package)), ""]
    return "\n".join(parts).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/events.md")
    parser.add_argument("--check", action="store_true", help="only say whether it is current")
    if not parser.parse_args().check:
        TARGET.write_text(document())
        return 0
    if TARGET.read_text() == document():
        return 0
    print(f"{TARGET.relative_to(ROOT)} is not current: run python scripts/events_doc.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
