"""Running: backends opened and closed, and the one shutdown that follows whatever happened (SD-5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stagewire import ConfigError, Job, KVError, PluginError, RunReport, StagewireError, hookimpl
from stagewire.app import App
from stagewire.lifecycle import StopSignal
from stagewire.registry import AXES, Candidate, Catalog
from stagewire.testing import run_virtual

CLOSING = ["prepare", "shutdown", "close transport", "close lease", "close kv"]


def acted(theatre: Any) -> list[str]:
    return [step for step in theatre.trail if not step.startswith("build")]


def test_sd5_backends_open_before_the_run_and_close_after_the_pipeline(theatre: Any) -> None:
    report = run_virtual(at_once(theatre.run()))
    assert report == RunReport()
    assert acted(theatre) == ["open kv", "open lease", "open transport", "run", *CLOSING]


def test_only_what_was_built_is_opened(theatre: Any) -> None:
    theatre.uses = ("kv",)
    run_virtual(theatre.run())
    assert acted(theatre) == ["open kv", "run", "prepare", "shutdown", "close kv"]


def test_a_backend_asked_for_after_the_build_is_refused(theatre: Any) -> None:
    theatre.uses = ()

    async def late() -> RunReport:
        theatre.contexts[0].transport()
        return RunReport()

    theatre.acts["run"] = late
    with pytest.raises(PluginError, match="ask for the transport in the factory"):
        run_virtual(theatre.run())


def test_the_run_sees_its_report_returned_unchanged(theatre: Any) -> None:
    expected = RunReport(rows=[("requests", "1")], details={"requests": 1})

    async def report() -> RunReport:
        return expected

    theatre.acts["run"] = report
    assert run_virtual(theatre.run()) is expected


def test_an_error_of_the_run_is_raised_after_everything_was_closed(theatre: Any) -> None:
    error = ZeroDivisionError("in the second act")

    async def fail() -> None:
        raise error

    theatre.acts["run"] = fail
    with pytest.raises(ZeroDivisionError) as raised:
        run_virtual(theatre.run())
    assert raised.value is error
    assert acted(theatre)[-5:] == CLOSING


def test_a_backend_that_cannot_open_is_named_and_what_was_opened_is_closed(theatre: Any) -> None:
    async def fail() -> None:
        raise OSError("refused")

    theatre.acts["open lease"] = fail
    with pytest.raises(StagewireError, match="lease backend 'memory' could not be opened: OSError: refused"):
        run_virtual(theatre.run())
    assert acted(theatre) == ["open kv", "open lease", "prepare", "shutdown", "close lease", "close kv"]


def test_a_backends_own_error_comes_through(theatre: Any) -> None:
    error = KVError("start the server")

    async def fail() -> None:
        raise error

    theatre.acts["open lease"] = fail
    with pytest.raises(KVError) as raised:
        run_virtual(theatre.run())
    assert raised.value is error


async def at_once(run: Awaitable[RunReport]) -> RunReport:
    """Await a run that is not to wait for any time to pass."""
    report = await run
    assert asyncio.get_running_loop().time() == 0
    return report


def stopping(theatre: Any, stop: StopSignal) -> asyncio.Event:
    """Make the run ask for the stop itself and end when its admission closes."""
    closed = asyncio.Event()

    async def run() -> RunReport:
        stop.set("enough")
        await closed.wait()
        await asyncio.sleep(3)  # the work inside ends in its own time
        theatre.trail.append("work ended")
        return RunReport(stopped=True)

    async def prepare() -> None:
        closed.set()

    theatre.acts |= {"run": run, "prepare": prepare}
    return closed


def test_sd5_a_stop_closes_admission_and_lets_the_work_inside_end(theatre: Any) -> None:
    stop = StopSignal()
    stopping(theatre, stop)
    report = run_virtual(theatre.run(stop=stop))
    assert report.stopped
    assert acted(theatre)[3:] == ["run", "prepare", "work ended", *CLOSING[1:]]


def test_sd1_a_stop_asked_for_before_the_run_is_seen(theatre: Any) -> None:
    stop = StopSignal()
    stop.set("before")
    stopping(theatre, stop)
    assert run_virtual(theatre.run(stop=stop)).stopped
    assert acted(theatre)[-4:] == CLOSING[1:]


def test_a_stop_ends_an_opening_that_hangs(theatre: Any) -> None:
    stop = StopSignal()

    async def hang() -> None:
        stop.set("enough")
        await asyncio.Event().wait()

    theatre.acts["open lease"] = hang
    report = run_virtual(at_once(theatre.run(stop=stop)))
    assert report == RunReport(stopped=True)
    assert acted(theatre) == ["open kv", "open lease", "prepare", "shutdown", "close lease", "close kv"]


def test_sd6_a_step_that_fails_is_tried_again_and_none_before_it(theatre: Any) -> None:
    failures = iter([OSError("first"), OSError("second")])

    async def fail_twice() -> None:
        if (error := next(failures, None)) is not None:
            raise error

    theatre.acts["close lease"] = fail_twice
    assert run_virtual(theatre.run()) == RunReport()
    assert acted(theatre)[4:] == [
        "prepare",
        "shutdown",
        "close transport",
        "close lease",
        "close lease",
        "close lease",
        "close kv",
    ]


def test_sd7_a_shutdown_that_hangs_is_a_failure_of_the_report_and_no_hang(theatre: Any) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    theatre.acts["close kv"] = hang

    async def main() -> RunReport:
        report: RunReport = await theatre.run(deadline=10)
        assert asyncio.get_running_loop().time() == 11  # the deadline and the last second after it
        return report

    (failure,) = run_virtual(main()).failures
    assert failure.subject == "shutdown"
    assert "shutdown KV backend 'memory'" in failure.cause


def test_sd7_work_that_ignores_the_stop_is_cut_short_at_the_deadline(theatre: Any) -> None:
    stop = StopSignal()

    async def stubborn() -> RunReport:
        stop.set("enough")
        try:
            await asyncio.Event().wait()
        finally:
            theatre.trail.append("cancelled")
        raise AssertionError

    theatre.acts["run"] = stubborn

    async def main() -> RunReport:
        report: RunReport = await theatre.run(stop=stop, deadline=10)
        assert asyncio.get_running_loop().time() == 10
        return report

    report = run_virtual(main())
    assert report.stopped
    assert len(report.failures) == 1
    assert acted(theatre)[3:] == ["run", "prepare", "cancelled", *CLOSING[1:]]


def test_cancelling_cuts_the_work_short_and_closes_everything(theatre: Any) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    theatre.acts["run"] = wait

    async def main() -> None:
        async with asyncio.timeout(5):
            await theatre.run()

    with pytest.raises(TimeoutError):
        run_virtual(main())
    assert acted(theatre)[-5:] == CLOSING


def test_cancelling_twice_loses_nothing_and_raises_after_the_shutdown(theatre: Any) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    async def slow() -> None:
        await asyncio.sleep(2)

    theatre.acts |= {"run": wait, "close kv": slow}

    async def main() -> None:
        task = asyncio.create_task(theatre.run())
        for _each in range(2):
            await asyncio.sleep(1)
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert acted(theatre)[-5:] == CLOSING

    run_virtual(main())


def test_cancelling_while_a_hanging_shutdown_is_cut_short_still_cancels(theatre: Any) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    theatre.acts["close kv"] = hang

    async def main() -> None:
        task = asyncio.create_task(theatre.run(deadline=1))
        await asyncio.sleep(1.5)  # past the deadline, within the last second
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert asyncio.get_running_loop().time() == 2

    run_virtual(main())


def test_a_run_cancelled_from_inside_is_an_error_and_not_a_cancel(theatre: Any) -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    theatre.acts["run"] = cancelled
    with pytest.raises(StagewireError, match="was cancelled from inside"):
        run_virtual(theatre.run())
    assert acted(theatre)[-5:] == CLOSING


def test_a_pipeline_that_returns_no_report_is_named(theatre: Any) -> None:
    async def nothing() -> None:
        return None

    theatre.acts["run"] = nothing
    with pytest.raises(StagewireError, match="pipeline 'play' returned NoneType from run; a RunReport is due"):
        run_virtual(theatre.run())


def test_a_log_file_that_cannot_be_opened_opens_nothing_else(theatre: Any, tmp_path: Path) -> None:
    app = theatre.app()
    config = theatre.config(app, "logging: {file: none/play.log}\n")
    with pytest.raises(ConfigError, match="create it"):
        run_virtual(app.run(config, Job(input=None, output=tmp_path)))
    assert acted(theatre) == []


def test_no_task_outlives_a_run(theatre: Any) -> None:
    async def main() -> set[str]:
        await theatre.run()
        return {task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}}

    assert run_virtual(main()) == set()


def logged(theatre: Any, error: Exception) -> dict[str, Any]:
    async def fail() -> None:
        raise error

    theatre.acts["run"] = fail
    app = theatre.app()
    config = theatre.config(app, "logging: {file: play.log}\n")
    with pytest.raises(type(error)):
        run_virtual(app.run(config, Job(input=None, output=theatre.folder)))
    lines = [json.loads(line) for line in (theatre.folder / "play.log").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["app.started", "app.failed"]
    return dict(lines[-1])


def test_the_log_keeps_the_trace_of_what_nobody_foresaw(theatre: Any) -> None:
    assert logged(theatre, ZeroDivisionError("odd"))["exception"][0]["exc_type"] == "ZeroDivisionError"


def test_the_log_keeps_no_trace_of_an_error_that_says_what_to_do(theatre: Any) -> None:
    line = logged(theatre, KVError("start the server"))
    assert line["cause"] == "KVError: start the server"
    assert "exception" not in line


def test_a_broken_plugin_is_on_record_in_the_log_of_a_run(theatre: Any, tmp_path: Path) -> None:
    def load() -> object:
        raise ImportError("no driver")

    parts: dict[str, Any] = {f"stagewire_{axis}": partial(list, theatre.app().catalog.providers(axis)) for axis in AXES}
    play = SimpleNamespace(**{name: hookimpl(lambda part=part: part()) for name, part in parts.items()})
    catalog = Catalog.discover(
        installed=[Candidate("acme", "acme", "1.0", "acme.plugin", load)], environ={}, extra_plugins={"play": play}
    )
    app = App(catalog, environ={})
    run_virtual(app.run(theatre.config(app, "logging: {file: play.log}\n"), Job(input=None, output=tmp_path)))
    first = json.loads((tmp_path / "play.log").read_text().splitlines()[0])
    assert (first["event"], first["plugin"]) == ("plugin.broken", "plugin 'acme' (acme 1.0)")
    assert "ImportError: no driver" in first["cause"]
