"""``metrics:`` in any pipeline's file: what is served, while it runs, and what is said when it cannot be."""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stagewire import BuildContext, ConfigError, Job, Message, Metric, Options, PluginError, Provider, RunReport
from stagewire.app import App
from stagewire.metrics import register_metrics, served
from stagewire.metrics.server import PATIENCE
from stagewire.registry import Catalog
from stagewire.spec.metrics import transport_metrics
from stagewire.testing import no_leaks
from stagewire_local.plugin import stagewire_transports
from stagewire_memory.plugin import stagewire_kv_backends, stagewire_lease_backends

prometheus = pytest.importorskip("prometheus_client")

Act = Callable[["Play"], Awaitable[None]]


class Play:
    """A pipeline with one number, which does in `run` what the test says."""

    def __init__(self, context: BuildContext, act: Act) -> None:
        self.context = context
        self.transport = context.transport()
        self.number = 0.0
        self._act = act

    def graph(self) -> str:
        return ""

    def metrics(self) -> Iterator[Metric]:
        yield Metric("play_scenes", "counter", "Scenes.", ("act",), {("first",): self.number})
        yield Metric("play_size", "gauge", "Size.", (), {(): 1 / self.number if self.number else 0.0})

    async def run(self, job: Job) -> RunReport:
        await self._act(self)
        return RunReport()

    async def prepare_shutdown(self) -> None: ...

    async def shutdown(self) -> None: ...


class Theatre:
    """Runs a play whose file has a ``metrics:`` block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def app(self, act: Act) -> App:
        def build(_options: Options, context: BuildContext) -> Play:
            return Play(context, act)

        return App(
            Catalog.of(
                pipelines=[Provider(name="play", summary="", factory=build)],
                transports=stagewire_transports(),
                kv_backends=stagewire_kv_backends(),
                lease_backends=stagewire_lease_backends(),
            ),
            environ={},
        )

    def run(self, metrics: str, act: Act) -> RunReport:
        app = self.app(act)
        file = self.folder / "play.yaml"
        log = self.folder / "log"
        file.write_text(f"version: 1\npipeline: play\nlogging: {{file: {log}}}\n{metrics}")
        with no_leaks():
            return asyncio.run(app.run(app.load([file]), Job(None, self.folder), signals=False))

    def port(self) -> int:
        """Where it says that it serves."""
        found = re.search(r'"metrics\.serving".*"port":\s*(\d+)', (self.folder / "log").read_text())
        assert found is not None
        return int(found[1])


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    return Theatre(tmp_path)


def get(port: int, path: str = "/metrics", accept: str = "") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


ANY = "metrics: {port: 0}\n"


async def nothing(_play: Play) -> None:
    """Play nothing."""


def test_tr12_the_pipelines_numbers_the_transports_and_the_processs_are_served(theatre: Theatre) -> None:
    answers: list[tuple[int, str, str]] = []

    async def act(play: Play) -> None:
        await play.transport.batches().put_batch("jobs", [Message("a"), Message("b")])
        for play.number in (3, 4):
            answers.append(await asyncio.to_thread(get, theatre.port()))

    theatre.run(ANY, act)
    for number, (status, kind, text) in zip((3, 4), answers, strict=True):
        assert status == 200
        assert kind.startswith("text/plain")
        for line in (
            f'stagewire_play_scenes_total{{act="first",pipeline="play"}} {number:.1f}',
            f'stagewire_play_size{{pipeline="play"}} {1 / number}',
            'stagewire_transport_puts_total{edge="jobs",pipeline="play"} 2.0',
            'stagewire_transport_gets_total{edge="jobs",pipeline="play"} 0.0',
            "# TYPE stagewire_transport_outstanding gauge",
        ):
            assert line in text
        assert "process_cpu_seconds_total" in text


def test_the_format_that_is_asked_for_is_served(theatre: Theatre) -> None:
    kinds = []

    async def act(_play: Play) -> None:
        _, kind, text = await asyncio.to_thread(get, theatre.port(), "/metrics?x=1", "application/openmetrics-text")
        kinds.append(kind)
        assert text.endswith("# EOF\n")

    theatre.run(ANY, act)
    assert kinds[0].startswith("application/openmetrics-text")


def test_nothing_is_served_any_more_when_the_run_has_ended(theatre: Theatre) -> None:
    theatre.run(ANY, nothing)
    with pytest.raises(ConnectionRefusedError):
        get(theatre.port())


def test_nothing_is_served_any_more_when_the_run_has_failed(theatre: Theatre) -> None:
    async def act(_play: Play) -> None:
        raise RuntimeError("broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        theatre.run(ANY, act)
    with pytest.raises(ConnectionRefusedError):
        get(theatre.port())


def test_a_client_that_says_nothing_holds_up_neither_others_nor_the_end(theatre: Theatre) -> None:
    silent = socket.socket()

    async def act(_play: Play) -> None:
        silent.connect(("127.0.0.1", theatre.port()))
        assert (await asyncio.to_thread(get, theatre.port()))[0] == 200

    began = time.monotonic()
    with silent:
        theatre.run(ANY, act)
    assert time.monotonic() - began < PATIENCE  # which the server itself would give it


@pytest.mark.parametrize("path", ["/", "/metricsx"])
def test_there_is_nothing_else_to_be_had(theatre: Theatre, path: str) -> None:
    async def act(_play: Play) -> None:
        status, _, text = await asyncio.to_thread(get, theatre.port(), path)
        assert (status, text) == (404, "see /metrics\n")

    theatre.run(ANY, act)


def test_numbers_that_cannot_be_had_fail_the_scrape_and_not_the_run(theatre: Theatre) -> None:
    async def act(play: Play) -> None:
        play.number = "many"  # type: ignore[assignment]
        status, _, text = await asyncio.to_thread(get, theatre.port())
        assert status == 503
        assert "unsupported operand" in text
        play.number = 1
        assert (await asyncio.to_thread(get, theatre.port()))[0] == 200

    theatre.run(ANY, act)


def test_a_loop_that_is_busy_fails_the_scrape_instead_of_holding_it(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "LATE", 0.05)

    async def act(_play: Play) -> None:
        scrape = asyncio.get_running_loop().run_in_executor(None, get, theatre.port())
        while not scrape.done():
            time.sleep(0.2)  # noqa: ASYNC251 — the loop is busy
            await asyncio.sleep(0)
        status, _, text = scrape.result()
        assert (status, text) == (503, "the event loop was busy for more than 0.05 s\n")

    theatre.run(ANY, act)


def faults(theatre: Theatre, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        theatre.run(text, nothing)
    return [str(problem).removeprefix(f"{theatre.folder}/") for problem in caught.value.problems]


def test_a_port_in_use_is_a_located_fault_that_names_the_remedy(theatre: Theatre) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        [fault] = faults(theatre, f"metrics:\n  port: {port}\n")
        assert fault.startswith(f"play.yaml:5:9: metrics.port: port {port} of 127.0.0.1 is in use; choose another one")


def test_a_host_that_is_none_is_a_located_fault(theatre: Theatre) -> None:
    [fault] = faults(theatre, "metrics: {port: 0, host: no.such.host.invalid}\n")
    assert fault.startswith("play.yaml:4:26: metrics.host: there is no host 'no.such.host.invalid'")


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("metrics: {port: 70000}\n", "metrics.port", "65535"),
        ("metrics: {prot: 1}\n", "metrics.prot", "did you mean 'port'?"),
        ("metrics: {host: localhost}\n", "metrics.port", "is required"),
        ("metrics: 9090\n", "metrics", "map"),
    ],
)
def test_a_wrong_block_is_a_located_fault(theatre: Theatre, text: str, path: str, message: str) -> None:
    found = [fault for fault in faults(theatre, text) if f" {path}: " in fault]
    assert len(found) == 1
    assert message in found[0]


def test_without_its_package_the_block_is_a_fault_that_names_the_extra(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    [fault] = faults(theatre, ANY)
    assert fault.startswith("play.yaml:4:10: metrics: 'metrics' needs 'prometheus_client', not installed here:")
    assert 'pip install "stagewire[metrics]"' in fault
    theatre.run("", nothing)


def test_null_serves_nothing(theatre: Theatre) -> None:
    theatre.run("metrics: null\n", nothing)
    assert "metrics.serving" not in (theatre.folder / "log").read_text()


def test_tr12_what_only_one_transport_counts_is_served_too() -> None:
    metrics = {metric.name: metric for metric in transport_metrics({"a->b": {"puts": 3, "parked": 2}})}
    assert metrics["transport_puts"].values == {("a->b",): 3}
    assert metrics["transport_other"].values == {("a->b", "parked"): 2}
    assert metrics["transport_outstanding"].kind == "gauge"


def test_numbers_of_ones_own_go_into_a_registry_and_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = prometheus.CollectorRegistry()
    take_out = register_metrics(lambda: [Metric("x", "gauge", "X.", (), {(): 2})], registry, pipeline="p")
    assert 'stagewire_x{pipeline="p"} 2.0' in prometheus.generate_latest(registry).decode()
    take_out()
    assert prometheus.generate_latest(registry) == b""
    monkeypatch.setitem(sys.modules, "prometheus_client.registry", None)
    with pytest.raises(PluginError, match=r'pip install "stagewire\[metrics\]"'):
        register_metrics(list, registry, pipeline="p")


def test_any_kind_of_options_says_what_it_does(theatre: Theatre) -> None:
    """The block is in the schema, so an editor knows it."""
    from stagewire.config import json_schema  # noqa: PLC0415 — only here

    schema: Any = json_schema(theatre.app(nothing).catalog)
    assert "MetricsOptions" in schema["$defs"]
