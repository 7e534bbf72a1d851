"""The App: one catalog, one clock, and the pipelines built and run with them. There is no global one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from stagewire.assembly import Assembly, Services
from stagewire.config import Config, load_config
from stagewire.errors import StagewireError
from stagewire.events import emit
from stagewire.lifecycle import ForcedStop, StopSignal, stop_on_signals
from stagewire.probing import probe_all
from stagewire.registry import Catalog, PluginState
from stagewire.running import Running
from stagewire.spec.pipeline import Job, Pipeline, RunReport
from stagewire.spec.provider import Clock

DEADLINE = 30.0
"""Seconds that a stop may take before it is forced."""


class App:
    """Loads, builds and runs pipelines. Several Apps live side by side; none knows of another.

    Args:
        catalog: The plugins. Default: what is installed, found when first needed.
        clock: Monotonic seconds, for everything that is built.
        environ: What ``${env:…}`` and the plugin lists refer to. Default: the process environment.
    """

    def __init__(
        self,
        catalog: Catalog | None = None,
        clock: Clock = time.monotonic,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.clock = clock
        self.environ = environ
        self._catalog = catalog
        self._shared: dict[Hashable, Any] = {}

    @cached_property
    def catalog(self) -> Catalog:
        """The plugins that this App uses."""
        return self._catalog if self._catalog is not None else Catalog.discover(environ=self.environ)

    def load(self, paths: Sequence[Path | str]) -> Config:
        """Load the files, each laid over those before it. Opens nothing but the files.

        Raises:
            ConfigError: With every fault found.
        """
        return load_config([Path(path) for path in paths], self.catalog, environ=self.environ)

    def build(self, config: Config) -> Pipeline:
        """Build the pipeline without opening anything.

        Raises:
            PluginError: A factory failed.
        """
        return self._assemble(config).product

    async def probe(self, config: Config) -> Mapping[str, str | StagewireError]:
        """Build the pipeline and try out its transport, KV and lease backend, without opening anything for good.

        Returns, for each by what a person calls it, one line about what answered, or why it cannot be used.

        Raises:
            PluginError: A factory failed.
        """
        return await probe_all(self._assemble(config))

    async def run(
        self,
        config: Config,
        job: Job,
        *,
        stop: StopSignal | None = None,
        signals: bool = True,
        deadline: float = DEADLINE,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> RunReport:
        """Build the pipeline, open the backends that it asked for, run the job, and shut down (SD-5).

        Setting ``stop``, SIGTERM and Ctrl-C all lead to the same shutdown, and so does cancelling, which cuts the work
        short. A second signal tells what is being waited for (SD-8).

        Args:
            config: What to run.
            job: Its input and its output directory.
            stop: Asks for the stop. Its reason tells afterwards what did: the name of the signal, if it was one.
            signals: Whether SIGTERM and Ctrl-C ask for the stop; in the main thread only.
            deadline: Seconds that the shutdown may take.
            tell: Takes a line for a person, now and then.

        Raises:
            ForcedStop: The deadline after a signal passed and the work was cut off. Its ``report`` says what there was.
            StagewireError: Building, opening or running failed; everything that was opened is closed again.
        """
        assembly = self._assemble(config)
        stop = stop or StopSignal()
        self._report_broken_plugins(assembly)
        running = Running(assembly, stop, deadline)
        if not signals:
            return await running.run(job)
        try:
            async with stop_on_signals(
                stop.set, deadline=deadline, waiting_for=running.waiting_for, tell=tell, log=assembly.log
            ):
                return await running.run(job)
        except ForcedStop as forced:
            forced.report = running.report
            raise

    def _assemble(self, config: Config) -> Assembly:
        return Assembly(Services(self.catalog, self.clock, self._share), config)

    def _report_broken_plugins(self, assembly: Assembly) -> None:
        for plugin in self.catalog.plugins():
            if plugin.state is PluginState.BROKEN:
                emit(assembly.log, "plugin.broken", plugin=str(plugin), cause=plugin.reasons[0])

    def _share(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]
