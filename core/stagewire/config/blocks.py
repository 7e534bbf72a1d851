"""Finds every ``use:`` block, binds it to its provider, and runs the providers' checks."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stagewire.config.document import MOST_PROBLEMS
from stagewire.config.findings import Findings
from stagewire.config.models import BlockNotes, UnresolvedBlockError, UseBlock
from stagewire.config.shape import field_places, model_keys
from stagewire.config.tree import LIMITS, Where
from stagewire.config.validate import Checked, plugin_fault, validate
from stagewire.errors import PluginError, Problem
from stagewire.spec.provider import Provider

if TYPE_CHECKING:
    from stagewire.registry import Catalog


@dataclass(frozen=True, slots=True)
class _Found:
    """A block and where it stands. ``block`` is ``None`` when what surrounds it could not be validated."""

    at: Where
    kind: type[UseBlock]
    use: object
    values: dict[str, Any]
    block: UseBlock | None = None


class Resolver:
    """Binds the blocks of one configuration; faults go to ``findings``."""

    def __init__(self, catalog: Catalog, findings: Findings) -> None:
        self._catalog = catalog
        self._findings = findings

    def resolve(self, checked: Checked[Any], data: dict[str, Any], at: Where = ()) -> None:
        """Bind every block in what was validated from ``data``, and the blocks in their providers' options."""
        model = checked.model
        known = self._findings.document.origins
        found = _in_value(model, at, known) if model is not None else _in_notes(checked.notes, data, at)
        for each in found:
            if self._findings.full:
                return
            self._bind(each)

    def check(self, provider: Provider[Any], options: BaseModel | None, at: Where = ()) -> None:
        """Run the provider's own check, if it has one and there are options to check."""
        check = provider.check
        if check is not None and options is not None:
            self._report(provider, lambda: check(options, self._catalog), at)

    def check_backends(
        self, kind: Provider[Any], options: BaseModel | None, blocks: Sequence[UseBlock], at: Where = ()
    ) -> None:
        """Run the pipeline kind's check of the backends that the file chooses, if every one of them could be bound."""
        check = kind.check_backends
        if check is None or options is None or not blocks:
            return
        try:
            providers = {block.axis: block.provider for block in blocks}
        except UnresolvedBlockError:
            return  # reported as a fault of that block
        self._report(kind, lambda: check(options, providers), at)

    def _report(self, provider: Provider[Any], check: Callable[[], Iterable[Problem]], at: Where) -> None:
        try:
            for problem in islice(check(), MOST_PROBLEMS):
                self._findings.value(at + tuple(problem.path), problem.message, foreign=True)
        except Exception as error:  # noqa: BLE001 — a plugin's check may raise anything
            if isinstance(error, UnresolvedBlockError) and self._findings.found:
                return  # it came to a block whose fault was reported
            self._findings.cause = self._findings.cause or error
            self._findings.value(at, f"the check of {provider.name!r} {plugin_fault(error)}", foreign=True)

    def _bind(self, found: _Found) -> None:
        provider = self._provider(found)
        if provider is None:
            return
        checked = validate(provider.options, found.values, found.at, self._findings, also=model_keys(found.kind))
        if found.block is not None:
            found.block.resolve(provider, checked.model)
        self.resolve(checked, found.values, found.at)
        self.check(provider, checked.model, found.at)

    def _provider(self, found: _Found) -> Provider[Any] | None:
        if not isinstance(found.use, str):
            return None  # reported as a fault of the block's own model
        at = (*found.at, "use")
        if len(at) > LIMITS.depth:
            self._findings.value(at, f"blocks are nested deeper than {LIMITS.depth} levels")
            return None
        try:
            return self._catalog.get(found.kind.axis, found.use)
        except PluginError as error:
            self._findings.cause = self._findings.cause or error
            self._findings.value(at, str(error))
            return None


def _in_value(value: Any, at: Where, known: Container[Where]) -> Iterator[_Found]:
    """The blocks of a validated value, at any depth, in the order of the model."""
    if isinstance(value, UseBlock):
        yield _Found(at, type(value), value.use, value.provider_values(), value)
    if isinstance(value, BaseModel):
        for path, item in field_places(value, at, known):
            yield from _in_value(item, path, known)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _in_value(item, (*at, str(key)), known)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _in_value(item, (*at, index), known)


def _in_notes(notes: BlockNotes, data: dict[str, Any], at: Where) -> Iterator[_Found]:
    """The blocks that validation met. A note whose data a validator made itself has no place, and is left out."""
    places = dict(_places(data, at))
    met: dict[int, tuple[dict[str, Any], list[type[UseBlock]]]] = {}
    for kind, value in notes:
        if id(value) in places and isinstance(value, dict):
            met.setdefault(id(value), (value, []))[1].append(kind)
    for number, (value, kinds) in met.items():
        own = {key for kind in kinds for key in model_keys(kind)}  # of a union, it is not known which was meant
        values = {key: item for key, item in value.items() if key not in own}
        yield _Found(places[number], kinds[0], value.get("use"), values)


def _places(value: Any, at: Where) -> Iterator[tuple[int, Where]]:
    if isinstance(value, dict):
        yield id(value), at
        for key, item in value.items():
            yield from _places(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*at, index))
