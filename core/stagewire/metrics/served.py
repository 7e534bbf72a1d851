"""``metrics:`` while a pipeline runs."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stagewire.errors import ConfigError, Problem
from stagewire.events import emit
from stagewire.metrics.exposition import register_metrics
from stagewire.metrics.server import MetricsServer
from stagewire.spec.metrics import Metric

if TYPE_CHECKING:
    from stagewire.assembly import Assembly
    from stagewire.metrics.server import Scrape

LATE = 2.0
"""Seconds that a scrape waits for an event loop that is busy."""


@contextmanager
def metrics_served(assembly: Assembly) -> Iterator[None]:
    """Inside the block, on a running event loop, serve the assembly's numbers if its configuration says so.

    Raises:
        ConfigError: It cannot listen where it should.
        PluginError: prometheus-client is not installed.
    """
    options = assembly.config.metrics
    if options is None:
        yield
        return
    scrape = _scrape_of(assembly, asyncio.get_running_loop())
    try:
        server = MetricsServer(options.host, options.port, scrape)
    except OSError as error:
        raise ConfigError([_problem(assembly, error)]) from error
    try:
        emit(assembly.log, "metrics.serving", host=options.host, port=server.port)
        yield
    finally:
        server.close()


def _scrape_of(assembly: Assembly, loop: asyncio.AbstractEventLoop) -> Scrape:
    """Return what answers a scrape: the numbers of the assembly and those of the process."""

    def take() -> list[Metric]:
        taken: Future[list[Metric]] = Future()
        loop.call_soon_threadsafe(_take_into, taken, assembly)  # the numbers are the loop's, the thread is the scrape's
        try:
            return taken.result(LATE)
        except TimeoutError as error:
            raise TimeoutError(f"the event loop was busy for more than {LATE:g} s") from error

    from prometheus_client import CollectorRegistry, ProcessCollector  # noqa: PLC0415 — an optional install
    from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 — same

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    register_metrics(take, registry, pipeline=assembly.pipeline)

    def scrape(accept: str) -> tuple[str, bytes]:
        encode, kind = choose_encoder(accept)
        return kind, encode(registry)

    return scrape


def _take_into(taken: Future[list[Metric]], assembly: Assembly) -> None:
    try:
        taken.set_result(assembly.metrics())
    except Exception as error:  # noqa: BLE001 — a plugin may raise anything; the scrape says so
        taken.set_exception(error)


def _problem(assembly: Assembly, error: OSError) -> Problem:
    options, document = assembly.config.metrics, assembly.config.document
    assert options is not None
    if isinstance(error, socket.gaierror):
        path, text = ("metrics", "host"), f"there is no host {options.host!r} ({error.strerror}); 127.0.0.1 is this one"
    elif error.errno == errno.EADDRINUSE:
        path = ("metrics", "port")
        text = f"port {options.port} of {options.host} is in use; choose another one, or 0 for any that is free"
    else:
        path, text = ("metrics", "port"), f"cannot listen on {options.host}, port {options.port}: {error.strerror}"
    return Problem(text, path, document.locate(path))
