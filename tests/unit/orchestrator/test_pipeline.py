"""``pipeline: orchestrator`` from YAML: edges of both kinds, joins, routes, replicas, failures, stops, memory."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from stagewire import ConfigError, InputStream, Options, RunReport, StageRequest, StagewireError, To, describe
from stagewire.lifecycle import StopSignal
from stagewire_orchestrator import links, sinks, standstill

LINE = """
stages:
  lines: {use: lines}
  up: {use: up}
edges:
  - {from: lines, to: up, kind: KIND}
outputs:
  lines: {file: lines.txt}
  up: {file: up.txt}
"""


def chunk_line(kind: str = "chunk") -> str:
    return LINE.replace("KIND", kind)


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or14_a_line_runs_over_both_kinds_of_edge(lab: Any, kind: str) -> None:
    report: RunReport = lab.run(chunk_line(kind), "one\ntwo\nthree")
    assert lab.read("lines.txt") == "one\ntwo\nthree\n"
    assert lab.read("up.txt") == "ONE\nTWO\nTHREE\n"
    assert not report.failures
    assert [(file.stage, file.chunks, file.bytes) for file in report.outputs] == [("lines", 3, 14), ("up", 3, 14)]
    assert dict(report.rows)["result"] == "complete"
    assert report.details["complete"]


@pytest.mark.parametrize("kind", ["chunk", "batch"])
@pytest.mark.parametrize("source", ["", None])
def test_or14_an_empty_or_missing_input_gives_empty_files(lab: Any, kind: str, source: Any) -> None:
    report = lab.run(chunk_line(kind), source)
    assert (lab.read("lines.txt"), lab.read("up.txt")) == ("", "")
    assert not report.failures


def test_or14_downstream_consumes_while_upstream_still_produces(lab: Any) -> None:
    first_out = asyncio.Event()

    class Patient(InputStream):
        """Gives its second line only when the first has come out at the other end."""

        name, size = "<patient>", None

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"one\n"
            async with asyncio.timeout(20):
                await first_out.wait()
            yield b"two\n"

    async def watched(request: StageRequest) -> AsyncIterator[str]:
        async for chunk in request.chunks:
            first_out.set()
            yield chunk

    lab.stage("watched", watched)
    lab.run(chunk_line().replace("use: up", "use: watched"), Patient())
    assert lab.read("up.txt") == "one\ntwo\n"


def test_or16_what_came_out_is_in_the_file_before_the_input_has_ended(lab: Any, eventually: Any) -> None:
    class Watching(InputStream):
        """Gives its last line only when the first is in the file."""

        name, size = "<watching>", None

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"one\n"
            await eventually(lambda: (lab.out / "up.txt").exists() and bool(lab.read("up.txt")))
            yield b"two\n"

    report = lab.run(chunk_line(), Watching())
    assert not report.failures
    assert lab.read("up.txt") == "ONE\nTWO\n"


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or14_none_and_every_other_value_is_a_chunk_on_any_edge(lab: Any, kind: str) -> None:
    values = [None, False, 0, "", b"", [], {}, [None], {"a": None}, "x"]

    async def source(_request: StageRequest) -> AsyncIterator[Any]:
        for value in values:
            yield value

    async def show(request: StageRequest) -> AsyncIterator[str]:
        async for chunk in request.chunks:
            yield repr(chunk)

    lab.stage("source", source)
    lab.stage("show", show)
    lab.run(chunk_line(kind).replace("use: lines", "use: source").replace("use: up", "use: show")
            .replace("lines: {file: lines.txt}", "lines: {file: lines.jsonl}"))  # fmt: skip
    assert lab.read("up.txt").splitlines() == [repr(value) for value in values]


def test_or14_a_stage_that_ends_early_holds_its_upstream_not_back(lab: Any) -> None:
    async def first_only(request: StageRequest) -> AsyncIterator[str]:
        async for chunk in request.chunks:
            yield chunk
            return

    lab.stage("first_only", first_only)
    text = "\n".join(str(number) for number in range(5_000))
    lab.run(chunk_line().replace("use: up", "use: first_only"), text)
    assert lab.read("up.txt") == "0\n"
    assert lab.read("lines.txt") == f"{text}\n"


def test_or14_an_end_before_upstream_is_done_stops_upstream(lab: Any) -> None:
    closed: list[bool] = []

    async def endless(_request: StageRequest) -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
        finally:
            closed.append(True)

    async def two(request: StageRequest) -> AsyncIterator[str]:
        yield await anext(request.chunks)
        yield await anext(request.chunks)

    lab.stage("endless", endless)
    lab.stage("two", two)
    text = chunk_line().replace("use: lines", "use: endless").replace("use: up", "use: two")
    lab.run(text.replace("  lines: {file: lines.txt}\n", ""))
    assert lab.read("up.txt") == "x\nx\n"
    assert closed == [True]


FORK = """
stages:
  lines: {use: lines, route: ROUTE}
  left: {use: up}
  right: {use: twice}
  end: {use: STAGE, join: JOIN}
edges:
  - {from: lines, to: left, kind: KIND}
  - {from: lines, to: right, kind: KIND}
  - {from: left, to: end, kind: KIND}
  - {from: right, to: end, kind: KIND}
outputs:
  end: {file: end.jsonl}
"""


def fork(kind: str, join: str, stage: str = "same", route: str = "copy") -> str:
    return FORK.replace("KIND", kind).replace("JOIN", join).replace("STAGE", stage).replace("ROUTE", route)


async def same(request: StageRequest) -> AsyncIterator[Any]:
    async for chunk in request.chunks:
        yield chunk


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or13_zip_gives_pairs_in_the_order_of_the_edges(lab: Any, kind: str) -> None:
    lab.stage("same", same)
    lab.run(fork(kind, "zip").replace("twice", "same"), "a\nb\nc")
    assert lab.read("end.jsonl") == '["A","a"]\n["B","b"]\n["C","c"]\n'


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or13_zip_of_unequal_branches_fails_by_name(lab: Any, kind: str) -> None:
    lab.stage("same", same)
    report = lab.run(fork(kind, "zip"), "a\nb\nc")
    (failure,) = report.failures
    assert failure.stage == "end"
    assert "cannot be zipped" in failure.cause
    assert dict(report.rows)["result"].startswith("failed")
    assert not report.details["complete"]


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or13_all_gives_every_chunk_of_every_branch(lab: Any, kind: str) -> None:
    lab.stage("same", same)
    lab.run(fork(kind, "all"), "a\nb")
    chunks = lab.read("end.jsonl").split()
    assert sorted(chunks) == ['"A"', '"B"', '"a"', '"a"', '"b"', '"b"']
    assert [chunk for chunk in chunks if chunk.isupper()] == ['"A"', '"B"']
    if kind == "batch":
        assert chunks == ['"A"', '"B"', '"a"', '"a"', '"b"', '"b"']


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or13_any_gives_one_branch_whole(lab: Any, kind: str) -> None:
    lab.stage("same", same)
    lab.run(fork(kind, "any"), "a\nb")
    assert lab.read("end.jsonl").split() in (['"A"', '"B"'], ['"a"', '"a"', '"b"', '"b"'])


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or13_round_robin_gives_each_chunk_to_the_next_branch(lab: Any, kind: str) -> None:
    lab.stage("same", same)
    lab.run(fork(kind, "all", route="round-robin"), "a\nb\nc")
    assert sorted(lab.read("end.jsonl").split()) == ['"A"', '"C"', '"b"', '"b"']


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or13_a_stage_may_name_the_branch_of_each_chunk(lab: Any, kind: str) -> None:
    async def choose(request: StageRequest) -> AsyncIterator[To]:
        async for block in request.chunks:
            for word in block.decode().split():
                yield To("left" if word.startswith("l") else "right", word)

    lab.stage("choose", choose)
    lab.stage("same", same)
    text = fork(kind, "all", route="named").replace("use: lines", "use: choose")
    lab.run(text + "  lines: {file: lines.txt}\n", "la ra lo")
    assert sorted(lab.read("end.jsonl").split()) == ['"LA"', '"LO"', '"ra"', '"ra"']
    assert lab.read("lines.txt") == "la\nra\nlo\n"


@pytest.mark.parametrize("kind", ["chunk", "batch"])
@pytest.mark.parametrize(("yields", "says"), [("x", "names no successor"), (To("up", "x"), "names 'up'")])
def test_or13_a_wrong_branch_fails_the_request_by_name(lab: Any, kind: str, yields: Any, says: str) -> None:
    async def choose(_request: StageRequest) -> AsyncIterator[Any]:
        yield yields

    lab.stage("choose", choose)
    lab.stage("same", same)
    report = lab.run(fork(kind, "all", route="named").replace("use: lines", "use: choose"))
    (failure,) = report.failures
    assert failure.stage == "lines"
    assert says in failure.cause
    assert "'left', 'right'" in failure.cause


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or15_replicas_are_a_matter_of_yaml(lab: Any, kind: str) -> None:
    opened: list[int] = []

    class Counted:
        async def open(self, context: Any) -> None:
            opened.append(context.replica)

        async def process(self, request: StageRequest) -> AsyncIterator[str]:
            async for chunk in request.chunks:
                yield chunk

    lab.stage("counted", Counted)
    text = (
        chunk_line(kind)
        .replace("use: up", "use: counted, replicas: 3")
        .replace("use: lines", "use: lines, replicas: 2")
    )
    lab.run(text, "a\nb")
    assert sorted(opened) == [0, 1, 2]
    assert lab.read("up.txt") == "a\nb\n"


@pytest.mark.parametrize("kind", ["chunk", "batch"])
@pytest.mark.parametrize("place", ["lines", "up"])
def test_or10_a_stage_that_raises_is_named_and_its_partial_files_stay(lab: Any, kind: str, place: str) -> None:
    async def broken(request: StageRequest) -> AsyncIterator[str]:
        async for _chunk in request.chunks:
            yield "before"
            raise ValueError("boom")

    lab.stage("broken", broken)
    report = lab.run(chunk_line(kind).replace(f"use: {place}", "use: broken"), "one\ntwo")
    (failure,) = report.failures
    assert (failure.stage, failure.cause) == (place, "process: ValueError: boom")
    assert isinstance(failure.error, ValueError)
    assert lab.read(f"{place}.txt") == "before\n"
    assert dict(report.rows)["result"] == "failed; the files hold what there was until then"


def leaves(_request: Any, error: BaseException) -> Any:
    """Put out one chunk, then end in a way that would end a program."""
    yield "before"
    raise error


@pytest.mark.parametrize("blocking", ["async", "no", "thread"])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), SystemExit()], ids=repr)
def test_or10_what_would_end_a_program_fails_the_request_only(lab: Any, blocking: Any, error: BaseException) -> None:
    async def leaves_async(request: StageRequest) -> AsyncIterator[str]:
        for chunk in leaves(request, error):
            yield chunk

    if blocking == "async":
        lab.stage("leaves", leaves_async)
    else:
        lab.stage("leaves", lambda request: leaves(request, error), blocking=blocking)
    (failure,) = lab.run(chunk_line().replace("use: up", "use: leaves"), "x").failures
    assert (failure.stage, failure.cause) == ("up", f"process: {describe(error)}")
    assert lab.read("up.txt") == "before\n"


@pytest.mark.parametrize("method", ["open", "factory"])
def test_or10_a_stage_that_leaves_before_its_first_request_is_named(lab: Any, method: str) -> None:
    class Leaves:
        def __init__(self) -> None:
            if method == "factory":
                sys.exit("no model")

        async def open(self, _context: Any) -> None:
            sys.exit("no model")

        async def process(self, request: StageRequest) -> AsyncIterator[str]:
            yield request.id

    lab.stage("leaves", Leaves)
    with pytest.raises(StagewireError, match=r"'up'.* (could not be opened|cannot be made): SystemExit: no model"):
        asyncio.run(lab.run_async(chunk_line().replace("use: up", "use: leaves"), "x"))


def test_or10_a_stage_that_leaves_as_it_closes_ends_nothing_else(lab: Any) -> None:
    class Leaves:
        async def process(self, request: StageRequest) -> AsyncIterator[str]:
            async for chunk in request.chunks:
                yield chunk

        async def close(self) -> None:
            sys.exit(3)

    lab.stage("leaves", Leaves)
    report = lab.run(chunk_line().replace("use: up", "use: leaves"), "x")
    assert not report.failures
    assert lab.read("up.txt") == "x\n"


def test_a_run_without_the_input_that_a_stage_asks_for_says_so(lab: Any) -> None:
    async def source(_request: StageRequest) -> AsyncIterator[str]:
        yield "x"

    lab.stage("source", source)
    asked, unasked = lab.run(chunk_line()), lab.run(chunk_line().replace("use: lines", "use: source"))
    assert dict(asked.rows)["input"] == "none; give one with --input PATH, or - for standard input"
    assert "input" not in dict(unasked.rows)


def test_or8_a_stop_that_is_cut_short_names_the_stage_and_reports_what_there_is(lab: Any) -> None:
    stop, reached = StopSignal(), asyncio.Event()

    async def stuck(request: StageRequest) -> AsyncIterator[str]:
        yield await anext(request.chunks)
        reached.set()
        await asyncio.Event().wait()

    lab.stage("stuck", stuck)

    async def main() -> RunReport:
        running = asyncio.create_task(
            lab.run_async(chunk_line().replace("use: up", "use: stuck"), "one\n", stop, deadline=0.05)
        )
        await reached.wait()
        async with asyncio.timeout(20):
            while lab.pipeline.waiting_for() != "stage 'up'":  # noqa: ASYNC110 — nothing tells when the one before ends
                await asyncio.sleep(0.001)
        stop.set("enough")
        report: RunReport = await running
        return report

    report = asyncio.run(main())
    assert report.stopped
    assert lab.read("up.txt") == "one\n"
    assert [file.chunks for file in report.outputs] == [1, 1]
    assert dict(report.rows)["result"] == "stopped; the files hold what there was until then"
    assert lab.pipeline.waiting_for() is None


def test_or10_an_input_that_cannot_be_read_on_fails_the_entry(lab: Any) -> None:
    class Broken(InputStream):
        name, size = "<broken>", None

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"one\n"
            raise StagewireError("the disk is gone")

    report = lab.run(chunk_line(), Broken())
    (failure,) = report.failures
    assert (failure.stage, failure.cause) == ("lines", "process: StagewireError: the disk is gone")


def test_an_output_that_is_the_input_is_refused_before_any_file_is_touched(lab: Any) -> None:
    (lab.out / "up.txt").write_text("precious")

    class Same(InputStream):
        name, size = "up.txt", 8

        def is_same_file(self, path: Path) -> bool:
            return path.name == "up.txt"

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"precious"

    with pytest.raises(ConfigError, match=r"up\.txt is the input itself, and would replace it") as caught:
        lab.run(chunk_line(), Same())
    (problem,) = caught.value.problems
    assert problem.path == ("outputs", "up", "file")
    assert problem.location is not None
    assert (problem.location.file, problem.location.line) == (lab.folder / "pipeline.yaml", 12)
    assert lab.read("up.txt") == "precious"
    assert not (lab.out / "lines.txt").exists()


@pytest.mark.parametrize("method", ["open", "factory"])
def test_or10_a_stage_that_cannot_be_opened_is_named(lab: Any, method: str) -> None:
    class Locked:
        def __init__(self) -> None:
            if method == "factory":
                raise OSError("no device")

        async def open(self, _context: Any) -> None:
            raise OSError("no device")

        async def process(self, request: StageRequest) -> AsyncIterator[str]:
            yield request.id

    lab.stage("locked", Locked)
    with pytest.raises(StagewireError, match="no device") as caught:
        asyncio.run(lab.run_async(chunk_line().replace("use: up", "use: locked"), "x"))
    assert "'up'" in str(caught.value)


def test_or10_a_cancel_that_a_stage_makes_itself_fails_its_request(lab: Any) -> None:
    async def cancelled(_request: StageRequest) -> AsyncIterator[str]:
        yield "x"
        raise asyncio.CancelledError

    lab.stage("cancelled", cancelled)
    (failure,) = lab.run(chunk_line().replace("use: lines", "use: cancelled")).failures
    assert (failure.stage, failure.cause) == ("lines", "process: CancelledError")


def test_or14_a_stage_that_is_slow_loses_no_chunk_to_the_transports_expiry(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "KEEP_ALIVE", 0.02)

    async def slow(request: StageRequest) -> AsyncIterator[str]:
        async for chunk in request.chunks:
            yield chunk
            if chunk in {"1", "100", "300"}:
                await asyncio.sleep(0.4)

    lab.stage("slow", slow)
    text = "\n".join(str(number) for number in range(600))
    report = lab.run(chunk_line().replace("use: up", "use: slow") + "transport: {use: local, expires: 0.2}\n", text)
    assert not report.failures
    assert lab.read("up.txt") == f"{text}\n"


@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or12_a_stage_that_fails_before_its_first_chunk_lets_the_others_go_at_once(lab: Any, kind: str) -> None:
    async def broken(request: StageRequest) -> AsyncIterator[str]:
        if request.id:
            raise ValueError("boom")
        yield request.id

    lab.stage("broken", broken)
    report = lab.run(chunk_line(kind).replace("use: lines", "use: broken"), "x")
    assert report.failures[0].stage == "lines"
    assert report.details["seconds"] < links.LINGER / 2  # nobody waited for a terminal that does not come


def test_or13_a_zip_that_stands_still_ends_by_name(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(standstill, "PATIENCE", 0.2)

    async def every_thousandth(request: StageRequest) -> AsyncIterator[str]:
        number = 0
        async for chunk in request.chunks:
            if number % 1_000 == 999:
                yield chunk
            number += 1

    lab.stage("same", same)
    lab.stage("every_thousandth", every_thousandth)
    text = fork("chunk", "zip").replace("use: twice", "use: every_thousandth")
    (failure,) = lab.run(text, "x\n" * 5_000).failures
    assert failure.stage == "end"
    assert (
        "nothing has moved for 0.2 s: 'right', 'end' wait for chunks that 'lines', 'left' cannot send" in failure.cause
    )


def test_or13_a_zip_that_is_only_slow_is_left_alone(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(standstill, "PATIENCE", 0.05)

    async def slow(request: StageRequest) -> AsyncIterator[str]:
        async for chunk in request.chunks:
            await asyncio.sleep(0.3)
            yield chunk

    lab.stage("same", same)
    lab.stage("slow", slow)
    report = lab.run(fork("chunk", "zip").replace("use: twice", "use: slow"), "a\nb")
    assert not report.failures


def test_or17_clocks_are_a_matter_of_yaml(lab: Any) -> None:
    async def stuck(request: StageRequest) -> AsyncIterator[str]:
        yield await anext(request.chunks)
        await asyncio.Event().wait()

    lab.stage("stuck", stuck)
    text = chunk_line().replace("use: up", "use: stuck") + "clocks: {between: 0.05}\n"
    lines = "\n".join("x" for _ in range(2_000))
    (failure,) = lab.run(text, lines).failures
    assert failure.stage == "up"  # lines is only held back
    assert "clock between" in failure.cause


def test_or14_a_silent_edge_fails_by_name_at_its_deadline(lab: Any) -> None:
    async def silent(_request: StageRequest) -> AsyncIterator[str]:
        yield "x"
        await asyncio.Event().wait()

    lab.stage("silent", silent)
    text = chunk_line().replace("use: lines", "use: silent").replace("kind: chunk", "kind: chunk, stall: 0.05")
    (failure,) = lab.run(text).failures
    assert failure.stage == "up"
    assert "lines->up" in failure.cause


def test_or16_back_pressure_reaches_from_the_file_to_the_input(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    read = 0

    class Long(InputStream):
        name, size = "<long>", None

        async def __aiter__(self) -> AsyncIterator[bytes]:
            nonlocal read
            for number in range(4_000):
                read = number
                yield b"%d\n" % number
                if number % 100 == 0:
                    await asyncio.sleep(0)

    async def main() -> None:
        running = asyncio.create_task(lab.run_async(chunk_line() + "limits: {queued_outputs: 8}\n", Long()))
        seen = -1
        while seen != read:  # until nothing moves any more
            seen = read
            await asyncio.sleep(0.1)
        assert 0 < read < 2_000
        gate.set()
        assert not (await running).failures

    def slow(self: Any, chunk: Any) -> None:
        add(self, chunk)
        self._size = sinks.BUFFER  # write at once, and wait there

    def wait(self: Any) -> None:
        gate.wait(20)
        flush(self)

    add, flush = sinks.Sink.add, sinks.Sink.flush
    monkeypatch.setattr(sinks.Sink, "add", slow)
    monkeypatch.setattr(sinks.Sink, "flush", wait)
    asyncio.run(main())
    lab.assert_quiescent()
    assert lab.read("up.txt").splitlines() == [str(number) for number in range(4_000)]


def test_or8_a_stop_reads_no_further_and_works_off_what_was_read(lab: Any) -> None:
    stop = StopSignal()
    reached = asyncio.Event()

    class Endless(InputStream):
        name, size = "<endless>", None

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"one\ntwo\n"
            reached.set()
            await asyncio.Event().wait()

    async def main() -> RunReport:
        running = asyncio.create_task(lab.run_async(chunk_line(), Endless(), stop))
        await reached.wait()
        stop.set("SIGTERM")
        report: RunReport = await running
        return report

    report = asyncio.run(main())
    assert (report.stopped, list(report.failures)) == (True, [])
    assert lab.read("up.txt") == "ONE\nTWO\n"
    assert dict(report.rows)["result"] == "stopped; the files hold what there was until then"
    lab.assert_quiescent()


def test_or8_cancelling_the_run_closes_everything(lab: Any) -> None:
    closed: list[str] = []
    begun = asyncio.Event()

    class Stuck:
        async def process(self, request: StageRequest) -> AsyncIterator[str]:
            async for chunk in request.chunks:
                begun.set()
                yield chunk
                await asyncio.Event().wait()

        async def close(self) -> None:
            closed.append("closed")

    lab.stage("stuck", Stuck)

    async def main() -> None:
        running = asyncio.create_task(lab.run_async(chunk_line().replace("use: up", "use: stuck"), "a\nb"))
        await begun.wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()

    asyncio.run(main())
    assert closed == ["closed"]
    tables = lab.pipeline._orchestrator.stats()["tables"]
    assert {name for name, count in tables.items() if count} == {"outputs"}  # its CANCEL, which nobody reads


def test_or18_progress_counts_what_was_read_and_what_came_out(lab: Any) -> None:
    report = lab.run(chunk_line(), "one\ntwo")
    last = lab.progress[-1]
    assert (last.done, last.total) == (7, 7)
    assert report.details["chunks"] == {"lines": 2, "up": 2}
    stats = report.details["stats"]
    assert stats["stage up/0"]["ended"] == 1
    assert stats["stage up/0 requests"] == {"running": 0, "outputs": 0}
    assert stats["stage lines/0 edge lines->up/0"]["puts"] == 3  # two lines and the end
    assert stats["stage up/0 edge lines->up"]["gets"] == 3
    assert report.details["input_bytes"] == 7


def test_or14_a_pipeline_of_batch_edges_needs_no_transport(lab: Any) -> None:
    lab.run(chunk_line("batch"), "x")
    assert lab.transport is None


def test_the_prompt_is_there_in_every_stage(lab: Any) -> None:
    seen: list[Any] = []

    async def look(request: StageRequest) -> AsyncIterator[Any]:
        seen.append((request.id, type(request.prompt).__name__, list(request.inputs), dict(request.inputs_by_stage)))
        async for chunk in request.chunks:
            yield chunk

    lab.stage("look", look)
    lab.run(chunk_line("batch").replace("use: up", "use: look"), "a\nb")
    assert seen == [("run", "RunInput", ["a", "b"], {"lines": ["a", "b"]})]


class Blocked(Options):
    marks: int = 1


@pytest.mark.parametrize("blocking", ["thread", "no"])
@pytest.mark.parametrize("kind", ["chunk", "batch"])
def test_or14_blocking_stages_take_part(lab: Any, kind: str, blocking: str) -> None:
    def shout(request: Any, options: Blocked) -> Any:
        for chunk in request.chunks:
            yield chunk.upper() + "!" * options.marks

    lab.stage("shout", shout, options=Blocked, blocking=blocking)
    lab.run(chunk_line(kind).replace("use: up", "use: shout, marks: 2"), "a\nb")
    assert lab.read("up.txt") == "A!!\nB!!\n"
