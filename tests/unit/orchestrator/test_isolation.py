"""One request's fault touches no other (OR-10), and a replica's death only what is bound to it (OR-11)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock

import pytest

from stagewire import RequestFailed
from stagewire.testing import run_virtual
from stagewire_orchestrator import Orchestrator, OrchOutput, StageOutput, Terminal
from stagewire_orchestrator.testing import FullClient, ScriptedClient

Play = Callable[..., None]


def failure(output: OrchOutput) -> RequestFailed:
    assert output.finished
    assert output.terminal is Terminal.ERROR
    assert not output.has_data
    assert output.error is not None
    return output.error


def test_or10_a_stage_that_reports_an_error_fails_its_request_by_name(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("bad", "good")
        world.stages[0].put("bad", error=ValueError("boom"))
        error = failure(await world.next())
        assert (error.request_id, error.stage, error.cause) == ("bad", 0, "process: ValueError: boom")
        assert isinstance(error.__cause__, ValueError)
        assert [output.finished for output in await world.finish("good")] == [False, False, True]

    play(story)


def test_or10_a_submit_that_raises_fails_its_request_by_stage_and_hook(play: Play) -> None:
    async def story(world: Any) -> None:
        def refuse(request_id: str, _payload: Any) -> None:
            if request_id == "bad":
                raise ConnectionError("no route")

        world.stages[1].on_submit = refuse
        await world.add("bad", "good")
        world.stages[0].put("bad", "x", True)
        error = failure((await world.until_terminal("bad"))[-1])
        assert (error.stage, error.cause) == (1, "submit: ConnectionError: no route")
        assert (await world.finish("good"))[-1].terminal is Terminal.END

    play(story)


@pytest.mark.parametrize("later", [False, True], ids=["at once", "awaitable"])
def test_or10_a_forward_function_that_raises_fails_its_request_by_stage_and_hook(play: Play, later: bool) -> None:
    def forward(stage: int, prompt: str, collected: list[Any]) -> Any:
        async def slow() -> list[Any]:
            await asyncio.sleep(0.01)
            return judge()

        def judge() -> list[Any]:
            if stage == 2 and "bad" in prompt:
                raise KeyError("no such voice")
            return collected

        return slow() if later else judge()

    async def story(world: Any) -> None:
        await world.add("bad", "good")
        for request in ("bad", "good"):
            world.stages[0].put(request, "x", True)
        await asyncio.sleep(0.02)
        for request in ("bad", "good"):
            world.stages[1].put(request, "x", True)
        await asyncio.sleep(0.02)
        error = failure((await world.until_terminal("bad"))[-1])
        assert (error.stage, error.cause) == (2, "forward_fn: KeyError: 'no such voice'")
        world.stages[2].put("good", "x", True)
        assert (await world.until_terminal("good"))[-1].terminal is Terminal.END
        assert not world.tables()

    play(story, forward=forward)


def test_or10_a_forward_function_whose_awaitable_is_cancelled_inside_fails_its_request(play: Play) -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def story(world: Any) -> None:
        await world.add("bad")
        world.stages[0].put("bad", "x", True)
        assert failure((await world.until_terminal("bad"))[-1]).cause == "forward_fn: CancelledError"

    play(story, forward=lambda *_: cancelled())


def test_or10_a_forward_function_may_return_an_awaitable_and_blocks_nobody(play: Play) -> None:
    gates: dict[str, asyncio.Event] = {}

    def forward(_stage: int, prompt: str, collected: list[Any]) -> Any:
        async def slow() -> list[Any]:
            await gates.setdefault(prompt, asyncio.Event()).wait()
            return [*collected, "made"]

        return slow() if "slow" in prompt else collected

    async def story(world: Any) -> None:
        await world.add("slow", "quick")
        world.stages[0].put("slow", "x", True)
        assert (await world.finish("quick"))[-1].terminal is Terminal.END
        gates["prompt of slow"].set()
        await world.settle()
        assert world.stages[1].submitted[-1] == ("slow", ["x", "made"])

    play(story, forward=forward)


def test_or10_an_output_that_is_none_is_dropped_and_the_others_go_on(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        for nonsense in (None, object(), StageOutput(None), StageOutput([])):  # type: ignore[arg-type]
            world.stages[0]._outputs.put(nonsense)
        assert [output.data for output in await world.finish("r")] == ["x", "x", "x"]
        assert world.orchestrator.dropped_outputs == 4

    play(story)


def test_or10_a_payload_whose_own_code_fails_fails_its_request(play: Play) -> None:
    class Hostile:
        @property
        def nbytes(self) -> int:
            raise RuntimeError("weigh me not")

    async def story(world: Any) -> None:
        await world.add("bad", "good")
        world.stages[0].put("bad", Hostile())
        assert "weigh me not" in failure(await world.next()).cause
        assert (await world.finish("good"))[-1].terminal is Terminal.END

    play(story)


def test_or11_a_reader_that_dies_fails_what_is_bound_to_it_and_new_ones_fail_fast(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("bound", "elsewhere")
        world.stages[0].put("bound", "x", True)
        await world.settle()
        world.stages[1].die(OSError("connection reset"))
        error = failure((await world.until_terminal("bound"))[-1])
        assert error.stage == 1
        assert "OSError: connection reset" in error.cause
        assert "elsewhere" in world.orchestrator.request_states  # it has not come to stage 1 yet

        await world.add("new")
        error = failure(await world.next())
        assert (error.request_id, error.stage) == ("new", 1)
        assert [each for each, _ in world.stages[0].submitted] == ["bound", "elsewhere"]

        world.stages[0].put("elsewhere", "x", True)
        assert failure((await world.until_terminal("elsewhere"))[-1]).stage == 1

    play(story)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), ValueError("x"), StopAsyncIteration()])
def test_or11_any_end_of_a_reader_is_its_death(play: Play, error: BaseException) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].die(error)
        assert failure(await world.next()).stage == 0

    play(story)


def test_or11_a_client_that_returns_no_list_is_lost(play: Play) -> None:
    class Wrong(ScriptedClient):
        async def get_output(self) -> Any:
            await super().get_output()
            return 7

    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].put("r")
        assert "TypeError" in failure(await world.next()).cause

    play(story, client=Wrong)


def test_or11_a_stage_without_replicas_fails_only_what_routes_through_it(play: Play) -> None:
    async def story(world: Any) -> None:
        world.stages[2].die(OSError())
        await world.add("r")
        world.stages[0].put("r", "x", True)
        outputs = await world.until_terminal("r")
        assert outputs[-1].terminal is Terminal.END

    play(story, finals={0})  # stages 1 and 2 are never needed


def test_or11_new_requests_go_to_another_replica() -> None:
    async def main() -> None:
        replicas = [ScriptedClient(), ScriptedClient()]
        async with Orchestrator({"s": replicas}, lambda *_: None, ["s"]) as orchestrator:
            await orchestrator.add_request("a", 1)
            await orchestrator.add_request("b", 2)
            await asyncio.sleep(0.01)
            assert [len(replica.submitted) for replica in replicas] == [1, 1]
            replicas[0].die(OSError())
            assert failure(await orchestrator.next_output(1)).request_id == "a"
            await orchestrator.add_request("c", 3)
            await asyncio.sleep(0.01)
            assert [request for request, _ in replicas[1].submitted] == ["b", "c"]

    run_virtual(main())


def test_or3_a_client_that_returns_nothing_at_once_does_not_starve_the_others(play: Play) -> None:
    class Busy(ScriptedClient):
        async def get_output(self) -> Any:
            return await super().get_output() if self._outputs else []

    async def story(world: Any) -> None:
        await world.add("r")
        assert [output.data for output in await world.finish("r")] == ["x", "x", "x"]

    play(story, client=Busy, real=True)


def test_or3_a_client_that_never_waits_lets_the_others_have_their_turn(play: Play) -> None:
    class Flood(ScriptedClient):
        flooding = False

        async def get_output(self) -> Any:
            return [StageOutput("nobody", 1)] if self.flooding else await super().get_output()

    async def story(world: Any) -> None:
        world.stages[2].flooding = True
        world.stages[2].put("nobody")
        await world.add("r")
        world.stages[0].put("r", "x")
        assert (await world.next()).data == "x"
        world.stages[2].flooding = False

    play(story, client=Flood, real=True)


def test_or3_a_submit_that_blocks_holds_up_its_own_replica_only(play: Play) -> None:
    async def story(world: Any) -> None:
        gate = asyncio.Event()

        async def block(request_id: str, _payload: Any) -> None:
            if request_id == "slow":
                await gate.wait()

        world.stages[1].on_submit = block
        await world.add("slow", "other")
        world.stages[0].put("slow", "x", True)
        world.stages[0].put("other", "y")
        await world.settle()
        assert [output.request_id for output in (await world.next(), await world.next())] == ["slow", "other"]
        gate.set()
        world.stages[0].put("other", "y", True)
        await world.settle()
        assert [request for request, _ in world.stages[1].submitted] == ["slow", "other"]

    play(story)


class Unclosable(FullClient):
    async def close(self) -> None:
        raise RuntimeError("cannot let go")


class Unabortable(FullClient):
    async def abort(self, request_id: str) -> None:
        raise RuntimeError(f"cannot let go of {request_id}")


@pytest.mark.parametrize("client", [Unclosable, Unabortable])
def test_or10_an_optional_method_that_raises_is_reported_and_the_work_goes_on(
    play: Play, client: type[FullClient], capsys: pytest.CaptureFixture[str]
) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        assert await world.orchestrator.abort("r")
        assert (await world.next()).terminal is Terminal.CANCEL

    play(story, client=client)
    assert "cannot let go" in capsys.readouterr().err


def test_or10_a_client_that_is_a_mock_will_do() -> None:
    async def main() -> None:
        outputs = [[StageOutput("r", "a")], [StageOutput("r", "b", True)]]

        async def get_output() -> list[StageOutput]:
            return outputs.pop(0) if outputs else await asyncio.Event().wait()  # type: ignore[return-value]

        client = AsyncMock(get_output=get_output)
        async with Orchestrator([client], lambda *_: None, [0]) as orchestrator:
            client.start.assert_awaited_once()
            await orchestrator.add_request("r", "prompt")
            assert [(await orchestrator.next_output(1)).data for _ in "ab"] == ["a", "b"]
            client.submit.assert_awaited_once_with("r", "prompt")

    run_virtual(main())


def test_or8_a_start_that_fails_undoes_what_was_started() -> None:
    class Unstartable(FullClient):
        async def start(self) -> None:
            await super().start()
            raise OSError("no device")

    async def main() -> None:
        good, bad = FullClient(), Unstartable()
        orchestrator = Orchestrator([good, bad], lambda *_: None, {1})
        with pytest.raises(OSError, match="no device"):
            await orchestrator.start()
        assert [name for name, _ in good.calls] == ["start", "close"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main())
