"""What an App gives to factories and stages, for tests that have no App."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stagewire.logs import fallback_logger
from stagewire.spec.kv import KVBackend
from stagewire.spec.lease import LeaseBackend
from stagewire.spec.provider import Clock
from stagewire.spec.stage import StageContext
from stagewire.spec.transport import StageId, Transport

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from stagewire.registry import Catalog

V = TypeVar("V")


class ManualClock:
    """A `Clock` that stands still until it is moved. Callable from any thread."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Move on."""
        self.now += seconds


@dataclass
class StubContext:
    """A `BuildContext` with what the test puts in; asking for anything else fails with its name.

    ``StubContext(clock=loop.time)`` gives virtual time to a backend.
    """

    pipeline: str = "test"
    base: Path = field(default_factory=Path.cwd)
    files: Sequence[Path] = ()
    clock: Clock = time.monotonic
    log: FilteringBoundLogger = field(default_factory=fallback_logger)
    backends: dict[str, Any] = field(default_factory=dict)
    _shared: dict[Hashable, Any] = field(default_factory=dict)

    def shared(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the one object under the key, made on first use."""
        if key not in self._shared:
            self._shared[key] = make()
        made: V = self._shared[key]
        return made

    @property
    def catalog(self) -> Catalog:
        """``backends["catalog"]``."""
        catalog: Catalog = self._backend("catalog")
        return catalog

    def transport(self) -> Transport:
        """Return ``backends["transport"]``."""
        transport: Transport = self._backend("transport")
        return transport

    def kv(self) -> KVBackend:
        """Return ``backends["kv"]``."""
        kv: KVBackend = self._backend("kv")
        return kv

    def lease(self) -> LeaseBackend:
        """Return ``backends["lease"]``."""
        lease: LeaseBackend = self._backend("lease")
        return lease

    def _backend(self, name: str) -> Any:
        if name not in self.backends:
            raise LookupError(f'the test gave the context no {name}: StubContext(backends={{"{name}": …}})')
        return self.backends[name]


def stage_context(
    stage: StageId = "stage",
    replica: int = 0,
    base: Path | None = None,
    *,
    input_directory: Path | None = None,
    output_directory: Path | None = None,
) -> StageContext:
    """Return what a stage is opened with."""
    return StageContext(
        stage=stage,
        replica=replica,
        base=base or Path.cwd(),
        log=fallback_logger(),
        input_directory=input_directory,
        output_directory=output_directory,
    )
