"""One pipeline put together: what its factories are offered, and the backends that they asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from stagewire.claims import ClaimCheck, ClaimedTransport
from stagewire.confidential import secrets_of
from stagewire.config import Config
from stagewire.config.models import UseBlock
from stagewire.errors import PluginError, StagewireError, describe
from stagewire.logs import LogSink, make_logger
from stagewire.logs.sink import FileTarget, StreamTarget, Target
from stagewire.registry import Catalog, noun
from stagewire.spec.kv import KVBackend
from stagewire.spec.lease import LeaseBackend
from stagewire.spec.metrics import Measured, Metric, transport_metrics
from stagewire.spec.pipeline import Pipeline
from stagewire.spec.provider import Axis, Clock, Provider
from stagewire.spec.transport import Transport

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

V = TypeVar("V")

CLAIMS = "claims"
"""The capability of a transport over which large payloads had better go as claims."""

IN_PROCESS = "in-process"
"""The capability of a store that no other process reaches."""


class Backend(Protocol):
    """What a transport, a KV backend and a lease backend have in common."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Services:
    """What an App lends to every pipeline that it builds."""

    catalog: Catalog
    clock: Clock
    shared: Callable[[Hashable, Callable[[], Any]], Any]


class Assembly:
    """A pipeline, its backends and its logger, built and not opened. This is the `BuildContext` of its factories.

    A backend is built when a factory first asks for it. Once `seal` was called no further one is built, for nobody
    would open it.

    Raises:
        PluginError: A factory failed; its error is the cause.
    """

    def __init__(self, services: Services, config: Config) -> None:
        self.config = config
        self._target = _LateTarget(config)
        self._sink = LogSink(self._target)
        self._services = services
        self._built: dict[Axis, Any] = {}
        self._log: FilteringBoundLogger | None = None
        self._sealed = False
        self.product: Pipeline = _make(config.kind, config.options, self, "pipelines")

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return self.config.name

    @property
    def base(self) -> Path:
        """The directory that relative paths refer to."""
        return self.config.base

    @property
    def files(self) -> Sequence[Path]:
        """The configuration's files."""
        return self.config.document.files

    @property
    def clock(self) -> Clock:
        """The App's clock."""
        return self._services.clock

    @property
    def catalog(self) -> Catalog:
        """The App's catalog."""
        return self._services.catalog

    @property
    def log(self) -> FilteringBoundLogger:
        """The pipeline's logger. Its file, if it has one, is opened by the first line or by `open_log`."""
        if self._log is None:
            self._log = make_logger(
                self.config.logging,
                pipeline=self.config.name,
                sink=self._sink,
                secrets=secrets_of(self.config),
            )
        return self._log

    @property
    def backends(self) -> Mapping[str, Backend]:
        """The backends that were built, by what a person calls them, in the order in which they are opened."""
        order: tuple[Axis, ...] = ("kv_backends", "lease_backends", "transports")
        return {self._title(axis): self._built[axis] for axis in order if axis in self._built}

    def traffic(self) -> Mapping[str, Mapping[str, float]]:
        """Return the transport's counters by edge and mailbox (TR-12); none when no transport was built."""
        built = self._built.get("transports")
        return {} if built is None else cast("Transport", built).stats()

    def shared(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the App's one object under ``key``."""
        return cast("V", self._services.shared(key, make))

    def transport(self) -> Transport:
        """Return the pipeline's transport; one to other processes sends large payloads as claims (TR-10)."""
        transport = cast("Transport", self._backend(self.config.transport))
        if isinstance(transport, ClaimedTransport) or not self._sends_claims():
            return transport
        check = ClaimCheck(self.kv(), self.lease(), clock=self.clock, log=self.log)
        claimed = self._built["transports"] = ClaimedTransport(transport, check)
        return claimed

    def _sends_claims(self) -> bool:
        """Whether the transport leaves this process and the payloads have a store that others reach."""
        config = self.config
        stores = (config.kv.provider, config.lease.provider)
        return CLAIMS in config.transport.provider.capabilities and not any(
            IN_PROCESS in store.capabilities for store in stores
        )

    def kv(self) -> KVBackend:
        """Return the pipeline's KV backend."""
        return cast("KVBackend", self._backend(self.config.kv))

    def lease(self) -> LeaseBackend:
        """Return the pipeline's lease backend."""
        return cast("LeaseBackend", self._backend(self.config.lease))

    def metrics(self) -> list[Metric]:
        """Return the numbers of the pipeline, if it has any, and those of its transport, if it was built (TR-12)."""
        own = self.product.metrics() if isinstance(self.product, Measured) else ()
        transport: Transport | None = self._built.get("transports")
        return [*own, *(() if transport is None else transport_metrics(transport.stats()))]

    def seal(self) -> None:
        """Build no further backend."""
        self._sealed = True

    @property
    def log_is_read_as_it_comes(self) -> bool:
        """Whether the log goes to a terminal."""
        return self._sink.terminal

    def open_log(self) -> None:
        """Open the log's file, if it has one. Raises `ConfigError`."""
        self._target.open()

    def close_log(self) -> None:
        """Let go of the log's file. Idempotent."""
        self._sink.close()

    def _backend(self, block: UseBlock) -> Any:
        if block.axis not in self._built:
            if self._sealed:
                raise PluginError(f"ask for the {noun(block.axis)} in the factory: a run opens what was asked for then")
            self._built[block.axis] = _make(block.provider, block.options, self, block.axis)
        return self._built[block.axis]

    def _title(self, axis: Axis) -> str:
        blocks: tuple[UseBlock, ...] = (self.config.transport, self.config.kv, self.config.lease)
        name = next(block.use for block in blocks if block.axis == axis)
        return f"{noun(axis)} {name!r}"


def _make(provider: Provider[V], options: object, context: Assembly, axis: Axis) -> V:
    try:
        return provider.factory(options, context)
    except StagewireError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"the {noun(axis)} {provider.name!r} cannot be built: {describe(error)}") from error


class _LateTarget:
    """Opens where the log goes at the first line, so that building a pipeline makes no file."""

    def __init__(self, config: Config) -> None:
        file = config.logging.file
        self._path = None if file is None else config.base / file
        self._target: Target | None = None

    @property
    def terminal(self) -> bool:
        return self._path is None and StreamTarget(sys.stderr).terminal

    def open(self) -> Target:
        if self._target is None:
            self._target = StreamTarget(sys.stderr) if self._path is None else FileTarget(self._path)
        return self._target

    def write(self, line: str) -> None:
        self.open().write(line)

    def close(self) -> None:
        if self._target is not None:
            self._target.close()
