"""What the commands of one invocation share."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import cached_property
from typing import TYPE_CHECKING

import click

import stagewire
from stagewire.cli.declared import declared_command
from stagewire.cli.watchdog import Watchdog

if TYPE_CHECKING:
    from stagewire.app import App
    from stagewire.config import Config
    from stagewire.registry import Catalog
    from stagewire.spec.pipeline import Job, RunReport


class Program:
    """One invocation of ``stagewire``: its environment, its plugins, and an App made when a command asks for it.

    Args:
        environ: The environment.
        extra_plugins: Plugin objects beside those that are installed.
        watchdog: Guards the parts that may hang.
    """

    def __init__(
        self, environ: Mapping[str, str], extra_plugins: Mapping[str, object] | None, watchdog: Watchdog
    ) -> None:
        self.environ = environ
        self.watchdog = watchdog
        self.debug = False
        self._extra_plugins = extra_plugins or {}

    @cached_property
    def catalog(self) -> Catalog:
        """The plugins. What one prints at import goes to standard error: standard output is the command's."""
        from stagewire.cli import plugin  # noqa: PLC0415 — a command that is declared needs no discovery
        from stagewire.registry import Catalog, given  # noqa: PLC0415 — same
        from stagewire.spec.hooks import PROJECT  # noqa: PLC0415 — same

        core = given({"core": plugin}, PROJECT, stagewire.__version__)
        with redirect_stdout(sys.stderr):
            return Catalog.discover(environ=self.environ, extra_plugins=self._extra_plugins, built_in=core)

    def command(self, name: str) -> click.Command:
        """Return the command that is called ``name``: of the plugin that declares it, else of whichever offers it.

        Raises:
            PluginError: There is none, or its plugin cannot be used.
        """
        with redirect_stdout(sys.stderr):
            declared = declared_command(name, self.environ)
        return declared or self.catalog.command(name)

    @cached_property
    def app(self) -> App:
        """The App."""
        from stagewire.app import App  # noqa: PLC0415 — `--help` needs no asyncio and no configuration loader

        return App(self.catalog, environ=self.environ)

    def load(self, config: str, overlays: Sequence[str]) -> Config:
        """Load a configuration with its overlays. Raises `ConfigError`."""
        return self.app.load([config, *overlays])

    def run_job(self, config: Config, job: Job, *, deadline: float) -> tuple[RunReport, int]:
        """Run a job of a plugin's command as ``stagewire run`` does; returns its report and the exit status.

        SIGTERM and Ctrl-C ask for the stop, which may take ``deadline`` seconds. Raises what the run raises.
        """
        from stagewire.cli.execution import run_job  # noqa: PLC0415 — `--help` needs no asyncio

        return run_job(self, config, job, deadline)


pass_program = click.make_pass_decorator(Program)
"""Gives a command function the `Program` as its first argument."""
