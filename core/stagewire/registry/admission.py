"""Decides, plugin by plugin in their order, what is usable and under which names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagewire.registry.axes import AXES, noun
from stagewire.registry.candidates import Candidate
from stagewire.registry.extras import missing_extra
from stagewire.registry.loading import Offer, load
from stagewire.registry.records import PluginRecord, PluginState
from stagewire.selection import BLOCK_VARIABLE, Selection
from stagewire.spec.provider import Axis, Provider

if TYPE_CHECKING:
    import click


@dataclass(frozen=True, slots=True)
class Entry:
    """A name on an axis: the provider, whose it is, and what it lacks, if anything."""

    provider: Provider[Any]
    plugin: PluginRecord
    lacks: str | None = None


@dataclass(slots=True)
class Table:
    """What has been admitted so far."""

    plugins: list[PluginRecord] = field(default_factory=list)
    entries: dict[Axis, dict[str, Entry]] = field(default_factory=lambda: {axis: {} for axis in AXES})
    commands: dict[str, tuple[click.Command, PluginRecord]] = field(default_factory=dict)


def admit_all(candidates: Iterable[Candidate], selection: Selection) -> Table:
    """Import what the selection lets through and admit it in order; the first to take a name keeps it."""
    table = Table()
    for candidate in candidates:
        refusal = selection.refusal(candidate.name) if candidate.selectable else None
        if refusal is not None:
            table.plugins.append(_record(candidate, PluginState.BLOCKED, (f"not imported: {refusal}",)))
        else:
            _admit(table, candidate, load(candidate))
    return table


def _admit(table: Table, candidate: Candidate, offer: Offer) -> None:
    if offer.broken is not None:
        table.plugins.append(_broken(candidate, offer))
        return
    clashes = tuple(_clashes(table, candidate, offer))
    lacks = {id(provider): missing_extra(provider) for each in offer.providers.values() for provider in each}
    wanting = tuple(text for text in lacks.values() if text is not None)
    record = _record(candidate, _state(clashes, wanting), clashes + wanting, offer)
    table.plugins.append(record)
    for axis, providers in offer.providers.items():
        for provider in providers:
            table.entries[axis].setdefault(provider.name, Entry(provider, record, lacks[id(provider)]))
    for command in offer.commands:
        table.commands.setdefault(str(command.name), (command, record))


def _state(clashes: tuple[str, ...], wanting: tuple[str, ...]) -> PluginState:
    if clashes:
        return PluginState.CONFLICT
    return PluginState.NEEDS_EXTRA if wanting else PluginState.LOADED


def _clashes(table: Table, candidate: Candidate, offer: Offer) -> Iterator[str]:
    later = _record(candidate, PluginState.CONFLICT)
    for axis, providers in offer.providers.items():
        for provider in providers:
            if (entry := table.entries[axis].get(provider.name)) is not None:
                yield _clash(noun(axis), provider.name, entry.plugin, later)
    for command in offer.commands:
        if (taken := table.commands.get(str(command.name))) is not None:
            yield _clash("command", str(command.name), taken[1], later)


def _clash(kind: str, name: str, earlier: PluginRecord, later: PluginRecord) -> str:
    return (
        f"{kind} {name!r} is offered by {earlier} and by {later}; the first is used. "
        f"Block or uninstall one: {BLOCK_VARIABLE}={earlier.name} or {BLOCK_VARIABLE}={later.name}"
    )


def _broken(candidate: Candidate, offer: Offer) -> PluginRecord:
    assert offer.broken is not None, "only called for a broken one"
    reason = f"{offer.broken}. Repair or upgrade it, or block it: {BLOCK_VARIABLE}={candidate.name}"
    return _record(candidate, PluginState.BROKEN, (reason,), offer)


def _record(
    candidate: Candidate, state: PluginState, reasons: tuple[str, ...] = (), offer: Offer | None = None
) -> PluginRecord:
    offer = offer or Offer()
    return PluginRecord(
        name=candidate.name,
        distribution=candidate.distribution,
        version=candidate.version,
        target=candidate.target,
        state=state,
        reasons=reasons,
        error=offer.broken.error if offer.broken else None,
        providers={axis: tuple(each.name for each in providers) for axis, providers in offer.providers.items()},
        commands=tuple(str(command.name) for command in offer.commands),
    )
