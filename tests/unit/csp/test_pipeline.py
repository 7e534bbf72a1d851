"""``pipeline: csp`` from YAML: what a file may say, what is wrong with it, and a run by the App."""

from __future__ import annotations

import asyncio
import io
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from stagewire import BuildContext, ConfigError, Job, Options, OutputFile, Progress, Provider, RunReport, StageContext
from stagewire.app import App
from stagewire.lifecycle import PhaseFailed, StopSignal
from stagewire.registry import Catalog
from stagewire.testing import run_virtual
from stagewire_csp import Inventory, WaterMarks
from stagewire_csp.options import CspOptions
from stagewire_csp.pipeline import CspPipeline
from stagewire_csp.plugin import stagewire_pipelines

if TYPE_CHECKING:
    from tests.unit.csp.conftest import Script

MakeScript = Callable[..., "Script"]


class Stages:
    """The three roles as providers, all played by one script; leaves a trail of opens and closes."""

    def __init__(self, script: Script, folder: Path) -> None:
        self.script = script
        self.folder = folder
        self.trail: list[str] = []
        self.contexts: list[StageContext] = []
        self.refuse: dict[str, Exception] = {}

    def provider(self, name: str, capability: str) -> Provider[Any]:
        stages = self

        class Role:
            def __getattr__(self, method: str) -> Any:
                if method == "settled" or (method == "outputs" and not hasattr(stages.script, "outputs")):
                    raise AttributeError(method)
                return getattr(stages.script, method)

            async def open(self, context: StageContext) -> None:
                stages.contexts.append(context)
                stages.act(f"open {context.stage}")

            async def close(self) -> None:
                stages.act(f"close {name}")

        def build(_options: Options, _context: BuildContext) -> Role:
            return Role()

        return Provider(name=f"test.{name}", summary="", factory=build, capabilities=frozenset({capability}))

    def act(self, what: str) -> None:
        self.trail.append(what)
        if what in self.refuse:
            raise self.refuse.pop(what)

    def app(self) -> App:
        class Backend:
            async def open(self) -> None: ...

            async def close(self) -> None: ...

        def backend(name: str) -> Provider[Any]:
            return Provider(name=name, summary="", factory=lambda _options, _context: Backend())

        return App(
            Catalog.of(
                pipelines=stagewire_pipelines(),
                stages=[
                    self.provider("t", "csp.producer"),
                    self.provider("q", "csp.requester"),
                    self.provider("c", "csp.consumer"),
                ],
                transports=[backend("local")],
                kv_backends=[backend("memory")],
                lease_backends=[backend("memory")],
            ),
            clock=lambda: asyncio.get_running_loop().time(),
            environ={},
        )

    def load(self, text: str = "", blocks: str | None = None) -> Any:
        file = self.folder / "pairs.yaml"
        blocks = "t: {use: test.t}\nq: {use: test.q}\nc: {use: test.c}\n" if blocks is None else blocks
        quiet = "logging: {level: error}\n"
        file.write_text("version: 1\npipeline: csp\n" + quiet + blocks + textwrap.dedent(text))
        return self.app().load([file])

    async def run(self, text: str = "", **options: Any) -> RunReport:
        observe = options.pop("observe", lambda _progress: None)
        directory = options.pop("input_directory", None)
        job = Job(input=None, output=self.folder, observe=observe, input_directory=directory)
        return await self.app().run(self.load(text), job, signals=False, **options)


@pytest.fixture
def stages(make_script: MakeScript, tmp_path: Path) -> Stages:
    return Stages(make_script(count=12), tmp_path)


SMALL = "capacity: {physical: 2}\n"


def test_csp12_three_stage_plugins_chosen_in_yaml_run_to_the_end(stages: Stages) -> None:
    seen: list[Progress] = []
    report = run_virtual(stages.run(SMALL, observe=seen.append))
    assert dict(report.rows)["pairs consumed"] == "12"
    assert (list(report.failures), report.stopped) == ([], False)
    assert report.details["balanced"] is True
    assert stages.trail == ["open t", "open q", "open c", "close c", "close q", "close t"]
    assert [context.base for context in stages.contexts] == [stages.folder] * 3
    assert seen[-1].counters["pairs"] == 12
    assert seen[-1].total is None


def test_csp16_what_a_terminal_shows_is_the_table_of_the_last_state(stages: Stages) -> None:
    seen: list[Progress] = []
    run_virtual(stages.run(SMALL, observe=seen.append))
    assert seen[-1].view is not None
    console = Console(width=80, file=io.StringIO(), color_system=None)
    console.print(seen[-1].view())
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for part in ("12 pairs in", "physical    ", "0/2", "a second: "):
        assert part in shown


def test_csp12_the_roles_are_given_the_directories_of_the_job_and_name_the_files_that_they_wrote(
    stages: Stages, tmp_path: Path
) -> None:
    files = [OutputFile(tmp_path / "sheet", "c", 1, 2)]
    setattr(stages.script, "outputs", lambda: files)  # noqa: B010 — a role may have it or not
    report = run_virtual(stages.run(SMALL, input_directory=tmp_path / "in"))
    assert list(report.outputs) == files * 3  # each of the three roles is played by the one script
    assert {context.output_directory for context in stages.contexts} == {stages.folder}
    assert {context.input_directory for context in stages.contexts} == {tmp_path / "in"}


def test_csp15_a_stop_signal_ends_the_run_with_an_account(stages: Stages) -> None:
    async def main() -> RunReport:
        stages.script.count = None
        stop = StopSignal()
        asyncio.get_running_loop().call_later(5, stop.set, "SIGTERM")
        return await stages.run(SMALL, stop=stop)

    report = run_virtual(main())
    assert report.stopped
    assert report.details["balanced"] is True
    assert report.details["state"]["t"]["consumed"] > 0
    assert stages.trail[-3:] == ["close c", "close q", "close t"]


def test_csp15_cancelling_the_app_closes_the_roles(stages: Stages) -> None:
    async def main() -> None:
        stages.script.count = None
        running = asyncio.create_task(stages.run(SMALL))
        await asyncio.sleep(5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run_virtual(main())
    assert stages.trail[-3:] == ["close c", "close q", "close t"]


def test_a_role_that_does_not_open_is_reported_and_those_before_it_are_closed(stages: Stages) -> None:
    stages.refuse["open q"] = OSError("no such service")
    with pytest.raises(OSError, match="no such service"):
        run_virtual(stages.run(SMALL))
    assert stages.trail == ["open t", "open q", "close q", "close t"]


def test_a_role_that_does_not_close_fails_the_run_and_the_others_are_closed(stages: Stages) -> None:
    stages.refuse["close q"] = OSError("busy")
    with pytest.raises(PhaseFailed, match="close q"):
        run_virtual(stages.run(SMALL))
    assert stages.trail[3:] == ["close c", "close q", "close q", "close t"]  # tried again, and nothing is closed twice


def test_a_failing_role_makes_a_run_that_fails_and_is_named(stages: Stages) -> None:
    async def bad_once(ticket: Any) -> None:
        if ticket == 3:
            raise ConnectionError("reset")

    stages.script.on_receive = bad_once
    report = run_virtual(stages.run(SMALL))
    assert [(failure.subject, failure.stage, failure.cause) for failure in report.failures] == [
        ("receive", "q", "ConnectionError: reset")
    ]
    assert report.details["balanced"] is True


def test_csp9_what_a_file_says_about_capacity_and_gate_reaches_the_runtime(stages: Stages) -> None:
    config = stages.load(
        """
        capacity: {physical: 3, t_slot: 5, q_slot: 6, q_pending: 7}
        gate: {t: {low: 1, high: 4}}
        ttl: {t: 30, q: 60}
        monitor: {interval: 2, stall_after: 9}
        failures: {backoff: 0.5, longest: 3, give_up: null}
        reply_timeout: 11
        deadline: 12
        """
    )
    pipeline = stages.app().build(config)
    assert isinstance(pipeline, CspPipeline)
    runtime = pipeline.runtime
    capacity, settings = runtime.capacity, runtime.settings
    assert (capacity.physical, capacity.t_slot, capacity.q_slot, capacity.q_pending) == (3, 5, 6, 7)
    assert (settings.t_marks, settings.q_marks) == (WaterMarks(1, 4), None)
    assert (settings.t_ttl, settings.q_ttl, settings.reply_timeout, settings.deadline) == (30, 60, 11, 12)
    assert (settings.monitor_interval, settings.stall_after) == (2, 9)
    assert (settings.failures.backoff, settings.failures.longest, settings.failures.give_up) == (0.5, 3, None)
    assert (runtime.inventory.t_slots.cap, runtime.inventory.q_slots.cap) == (5, 6)


def test_the_graph_shows_the_roles_and_the_capacities(stages: Stages) -> None:
    graph = stages.app().build(stages.load("capacity: {physical: 2, q_pending: 9}\n")).graph()
    assert graph.startswith("flowchart LR\n")
    for part in ("t: test.t<br/>physical 2", "physical 2, pending 9", 't -- "T, 8 slots" --> pair', "pair --> c"):
        assert part in graph


def faults(stages: Stages, text: str, blocks: str | None = None) -> list[str]:
    with pytest.raises(ConfigError) as error:
        stages.load(text, blocks)
    return [str(problem).removeprefix(str(stages.folder) + "/") for problem in error.value.problems]


def test_csp9_a_wrong_profile_is_a_located_fault(stages: Stages) -> None:
    [fault] = faults(stages, "capacity:\n  profile: lagre\n")
    assert fault.startswith("pairs.yaml:8:12: capacity.profile: there is no capacity profile 'lagre'")
    assert "did you mean 'large'?" in fault


def test_csp9_a_wrong_profile_in_the_environment_is_a_fault_too(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPACITY_PROFILE", "gigantic")
    [fault] = faults(stages, "")
    assert "capacity.profile: there is no capacity profile 'gigantic'" in fault
    assert stages.load("capacity: {profile: small}\n")


def test_csp9_the_environment_chooses_the_profile_once(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPACITY_PROFILE", "small")
    config = stages.load("capacity: {memory_per_physical: 1 MiB}\n")
    monkeypatch.setenv("CAPACITY_PROFILE", "large")
    pipeline = stages.app().build(config)
    assert isinstance(pipeline, CspPipeline)
    assert (pipeline.runtime.capacity.physical, pipeline.runtime.capacity.reason) == (2, "profile small")


def test_csp12_a_stage_that_is_not_of_the_role_is_a_located_fault(stages: Stages) -> None:
    found = faults(stages, "", "t: {use: test.c}\nq: {use: test.q}\nc: {use: test.t}\n")
    assert [fault.partition(" ")[0] for fault in found] == ["pairs.yaml:4:10:", "pairs.yaml:6:10:"]
    assert "'test.c' is no csp.producer" in found[0]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("capacity: {physical: 0}\n", "capacity.physical", "greater than 0"),
        ("capacity: {phsyical: 1}\n", "capacity.phsyical", "did you mean 'physical'?"),
        ("gate: {t: {low: 4, high: 4}}\n", "gate.t", "low (4) must be less than high (4)"),
        ("gate: {t: {low: 4}}\n", "gate.t.high", "required"),
        ("ttl: {t: 0}\n", "ttl.t", "greater than 0"),
        ("deadline: -1\n", "deadline", "greater than 0"),
        ("monitor: {interval: soon}\n", "monitor.interval", "number"),
        ("failures: {backoff: 20}\n", "failures", "backoff (20.0) must not be more than longest (10.0)"),
    ],
)
def test_bad_values_are_located_faults(text: str, place: str, message: str, stages: Stages) -> None:
    [fault] = faults(stages, text)
    assert f" {place}: " in fault
    assert message in fault


def test_a_missing_role_is_a_fault(stages: Stages) -> None:
    [fault] = faults(stages, "", "t: {use: test.t}\nq: {use: test.q}\n")
    assert "c: " in fault
    assert "required" in fault


def test_every_option_has_a_description() -> None:
    schema = CspOptions.model_json_schema()
    for name in ("CapacityOptions", "GateOptions", "TtlOptions", "MonitorOptions", "FailureOptions", "MarksOptions"):
        for key, value in schema["$defs"][name]["properties"].items():
            assert value.get("description"), f"{name}.{key}"


def test_the_library_is_used_without_a_pipeline() -> None:
    """An `Inventory` in one's own asyncio program needs no App, no YAML and no logger."""
    assert Inventory(1, 1).depths == (0, 0)
