"""What a plugin hands in: one `Provider` per name on each axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from stagewire.errors import Problem
from stagewire.spec.kv import KVBackend
from stagewire.spec.lease import LeaseBackend
from stagewire.spec.transport import Transport

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from stagewire.registry import Catalog

T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")

Axis = Literal["stages", "transports", "kv_backends", "lease_backends", "pipelines"]
"""What kind of thing a provider makes; also the last part of its hook's name, ``stagewire_{axis}``."""

Clock = Callable[[], float]
"""Monotonic seconds. Injected everywhere, so that tests run in virtual time."""


class Options(BaseModel):
    """Base of every options model: unknown keys are errors, values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BuildContext(Protocol):
    """What an App offers to a factory. Nothing here opens a connection."""

    @property
    def pipeline(self) -> str:
        """The pipeline's name, as logs show it."""

    @property
    def base(self) -> Path:
        """The directory that relative paths in the configuration refer to."""

    @property
    def files(self) -> Sequence[Path]:
        """The files of the configuration, in the order in which they are laid over each other."""

    @property
    def clock(self) -> Clock:
        """The App's monotonic clock."""

    @property
    def log(self) -> FilteringBoundLogger:
        """A logger bound to the pipeline."""

    @property
    def catalog(self) -> Catalog:
        """The installed providers."""

    def shared(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the App's one object under ``key``, made on first use. Namespace keys by the plugin's name."""

    def transport(self) -> Transport:
        """Return the pipeline's transport, built on first use; the App opens and closes it."""

    def kv(self) -> KVBackend:
        """Return the pipeline's KV backend, built on first use; the App opens and closes it."""

    def lease(self) -> LeaseBackend:
        """Return the pipeline's lease backend, built on first use; the App opens and closes it."""


Factory = Callable[[Any, BuildContext], T_co]
"""``factory(options, context)``: builds without opening; ``options`` is an instance of the provider's model."""


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional install that a provider needs: ``pip install "{distribution}[{name}]"`` brings the modules."""

    name: str
    modules: tuple[str, ...]
    distribution: str = "stagewire"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider(Generic[T_co]):
    """One named thing that YAML can choose with ``use: NAME``.

    Attributes:
        name: Unique on its axis; ``plugin.thing`` for stages, one word for the rest.
        summary: One line for ``stagewire plugins``.
        options: The pydantic model of its options; gives validation, JSON Schema and ``plugins show``.
        factory: Builds the thing. Imports drivers inside, never at module level.
        capabilities: Words that others may ask for, such as ``idempotent`` or ``csp.producer``.
        extra: The optional install it needs, if any.
        check: Finds faults that the model cannot see (a cycle, a dangling name) without opening anything. Paths are
            relative to the block that the options came from.
        check_backends: Of a pipeline kind: finds faults in how its options go with the providers that the file chooses
            on the axes ``transports``, ``kv_backends`` and ``lease_backends``.
    """

    name: str
    summary: str
    factory: Factory[T_co]
    options: type[BaseModel] = Options
    capabilities: frozenset[str] = field(default_factory=frozenset)
    extra: Extra | None = None
    check: Callable[[Any, Catalog], Iterable[Problem]] | None = None
    check_backends: Callable[[Any, Mapping[Axis, Provider[Any]]], Iterable[Problem]] | None = None
