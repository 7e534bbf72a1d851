"""Graphs (OR-13), both kinds of edge (OR-14), replicas (OR-15): what is submitted when, with what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from stagewire import ConfigError
from stagewire.testing import run_virtual
from stagewire_orchestrator import Edge, Graph, Join, Orchestrator, OrchOutput, Route, Submission, Terminal
from stagewire_orchestrator.testing import ScriptedClient, take_all


class Net:
    """An orchestrator over scripted stages, named by letters; ``ab`` is a batch edge, ``a~b`` a chunk edge."""

    def __init__(
        self,
        edges: str,
        finals: str,
        joins: Mapping[str, Join] | None = None,
        routes: Mapping[str, Route] | None = None,
        replicas: int = 1,
    ) -> None:
        parsed = [Edge(each[0], each[-1], "chunk" if "~" in each else "batch") for each in edges.split()]
        names = sorted({name for edge in parsed for name in (edge.source, edge.target)} | set(finals))
        self.clients = {name: [ScriptedClient() for _ in range(replicas)] for name in names}
        self.forwarded: list[tuple[Any, Any]] = []
        self.submissions: list[Submission] = []
        self.graph = Graph(names, parsed, finals, joins=joins, routes=routes)
        self.orchestrator = Orchestrator(self.clients, self._forward, set(finals), graph=self.graph)

    def _forward(self, stage: Any, _prompt: Any, collected: Any) -> Any:
        self.forwarded.append((stage, collected))
        return collected

    def put(self, stage: str, data: Any = None, finished: bool = False, request: str = "r", **more: Any) -> None:
        self.clients[stage][0].put(request, data, finished, **more)

    async def end(self, stage: str, *data: Any) -> None:
        for each in data:
            self.put(stage, each)
        self.put(stage, None, True, has_data=False)
        await asyncio.sleep(0.001)

    @property
    def started(self) -> str:
        """The stages that took the request, in no particular order."""
        return "".join(sorted(str(name) for name, clients in self.clients.items() if any(c.submitted for c in clients)))


def play(story: Callable[[Net], Any], *args: Any, **options: Any) -> list[OrchOutput]:
    async def main() -> list[OrchOutput]:
        net = Net(*args, **options)
        async with net.orchestrator:
            await net.orchestrator.add_request("r", "prompt")
            await asyncio.sleep(0.001)
            await story(net)
            outputs = await take_all(net.orchestrator)
            tables = net.orchestrator.stats()["tables"]
            if outputs and outputs[-1].finished:
                assert not any(tables.values()), tables
            return outputs

    return run_virtual(main())


def shown(outputs: Iterable[OrchOutput]) -> list[tuple[Any, Any, bool]]:
    return [(output.stage_id, output.data, output.finished) for output in outputs]


def test_or13_fan_out_gives_every_branch_a_copy() -> None:
    async def story(net: Net) -> None:
        await net.end("a", 1, 2)
        assert net.started == "abc"
        await net.end("b", "B")
        await net.end("c", "C")

    assert shown(play(story, "ab ac", "bc")) == [("b", "B", False), ("c", "C", False), ("c", None, True)]


def test_or13_a_terminal_without_a_chunk_is_told_from_a_chunk_that_is_none() -> None:
    async def story(net: Net) -> None:
        await net.end("a", None)

    outputs = play(story, "", "a")
    assert [(output.data, output.has_data, output.terminal) for output in outputs] == [
        (None, True, None),
        (None, False, Terminal.END),
    ]


def test_or13_fan_in_all_waits_for_every_input_and_keeps_their_order() -> None:
    async def story(net: Net) -> None:
        await net.end("a", 1)
        await net.end("c", "C")
        assert net.started == "abc"
        await net.end("b", "B1", "B2")
        assert net.forwarded[-1] == ("d", {"b": ["B1", "B2"], "c": ["C"]})
        await net.end("d", "D")

    assert shown(play(story, "ab ac bd cd", "d"))[-1] == ("d", None, True)


def test_or13_fan_in_any_takes_the_first_and_ignores_the_rest() -> None:
    async def story(net: Net) -> None:
        await net.end("a", 1)
        await net.end("c", "C")
        assert net.forwarded[-1] == ("d", {"c": ["C"]})
        await net.end("b", "B")
        assert sum(stage == "d" for stage, _ in net.forwarded) == 1
        await net.end("d", "D")

    assert shown(play(story, "ab ac bd cd", "d", {"d": "any"}))[-1] == ("d", None, True)


def test_or13_fan_in_zip_pairs_by_chunk_number() -> None:
    async def story(net: Net) -> None:
        await net.end("a", 1)
        await net.end("c", "C0", "C1")
        await net.end("b", "B0", "B1")
        assert net.forwarded[-1] == ("d", [("B0", "C0"), ("B1", "C1")])

    play(story, "ab ac bd cd", "d", {"d": "zip"})


def test_or13_zipping_different_lengths_fails_the_request_by_name() -> None:
    async def story(net: Net) -> None:
        await net.end("a", 1)
        await net.end("b", "B0")
        await net.end("c", "C0", "C1")

    (output,) = play(story, "ab ac bd cd", "d", {"d": "zip"})
    assert output.error is not None
    assert output.error.stage == "d"
    assert "'b' 1, 'c' 2" in output.error.cause


def by_name(_number: int, to: Any) -> Sequence[Any]:
    return [to]


def test_or13_a_route_sends_each_chunk_one_way() -> None:
    async def story(net: Net) -> None:
        net.put("a", 1, to="b")
        net.put("a", 2, to="c")
        net.put("a", 3, to="b")
        await net.end("a")
        assert net.forwarded == [("b", [1, 3]), ("c", [2])]
        await net.end("b", "B")
        await net.end("c", "C")

    assert shown(play(story, "ab ac", "bc", routes={"a": by_name}))[-1] == ("c", None, True)


def test_or13_a_branch_that_a_route_leaves_out_counts_as_ended() -> None:
    async def story(net: Net) -> None:
        net.put("a", 1, to="b")
        await net.end("a")
        assert net.started == "ab"
        await net.end("b", "B")
        assert net.forwarded[-1] == ("e", {"b": ["B"]})  # the join takes what there is
        await net.end("e", "E")

    outputs = play(story, "ab ac cd be de", "e", routes={"a": by_name})
    assert shown(outputs) == [("e", "E", False), ("e", None, True)]


def test_or13_a_final_branch_that_is_left_out_does_not_keep_the_request_open() -> None:
    async def story(net: Net) -> None:
        net.put("a", 1, to="b")
        await net.end("a")
        net.put("b", "B", True)

    assert shown(play(story, "ab ac", "bc", routes={"a": by_name})) == [("b", "B", True)]


@pytest.mark.parametrize("order", ["ab ac", "ac ab"])
def test_or13_a_request_whose_every_final_branch_is_left_out_ends_without_a_chunk(order: str) -> None:
    async def story(net: Net) -> None:
        await net.end("a")

    (output,) = play(story, order, "bc", routes={"a": by_name})
    assert (output.terminal, output.has_data) == (Terminal.END, False)


def test_or10_a_route_that_raises_fails_the_request() -> None:
    def broken(_number: int, _to: Any) -> Sequence[Any]:
        raise LookupError("which way?")

    async def story(net: Net) -> None:
        net.put("a", 1)

    (output,) = play(story, "ab ac", "bc", routes={"a": broken})
    assert output.error is not None
    assert (output.error.stage, "which way?" in output.error.cause) == ("a", True)


def test_or14_chunk_edges_start_the_whole_chain_at_once() -> None:
    async def story(net: Net) -> None:
        assert net.started == "abc"
        assert net.forwarded == [("b", ()), ("c", ())]
        await net.end("a")
        await net.end("c", "C")  # downstream may end first; the request waits for what is final

    assert shown(play(story, "a~b b~c", "c")) == [("c", "C", False), ("c", None, True)]


def test_or14_a_batch_edge_in_the_chain_is_where_it_waits() -> None:
    async def story(net: Net) -> None:
        assert net.started == "ab"
        await net.end("a")
        await net.end("b", 1, 2)
        assert net.started == "abcd"
        assert net.forwarded[1:] == [("c", [1, 2]), ("d", ())]
        await net.end("c")
        await net.end("d", "D")

    assert shown(play(story, "a~b bc c~d", "d"))[-1] == ("d", None, True)


def test_or14_a_join_of_chunk_edges_is_submitted_once() -> None:
    async def story(net: Net) -> None:
        assert all(len(client.submitted) == 1 for clients in net.clients.values() for client in clients)
        for stage in "abcd":
            await net.end(stage)

    play(story, "a~b a~c b~d c~d", "d", {"d": "zip"})


def test_or14_a_batch_input_of_an_unfinished_stage_is_an_empty_list() -> None:
    async def story(net: Net) -> None:
        await net.end("a")
        assert net.forwarded == [("b", [])]
        await net.end("b")

    play(story, "ab", "b")


def test_or15_a_request_stays_with_its_replica_and_the_least_loaded_takes_the_next() -> None:
    async def main() -> None:
        replicas = [ScriptedClient() for _ in range(3)]
        async with Orchestrator({"s": replicas}, lambda *_: None, ["s"]) as orchestrator:
            for request in "abcd":
                await orchestrator.add_request(request, 0)
                await asyncio.sleep(0.001)
            taken = [[request for request, _ in replica.submitted] for replica in replicas]
            assert taken == [["a", "d"], ["b"], ["c"]]
            replicas[1].put("b", 1, True)
            assert (await orchestrator.next_output(1)).finished
            await orchestrator.add_request("e", 0)
            await asyncio.sleep(0.001)
            assert replicas[1].submitted[-1][0] == "e"
            replicas[2].put("a", "an output of a request that is with another replica")
            await asyncio.sleep(0.001)
            assert orchestrator.dropped_outputs == 1

    run_virtual(main())


def test_or15_a_submission_says_which_replicas_receive_its_chunks() -> None:
    async def main() -> None:
        seen: list[Submission] = []
        graph = Graph("ab", [Edge("a", "b", "chunk")], "b")
        clients = {"a": [ScriptedClient()], "b": [ScriptedClient(), ScriptedClient()]}
        orchestrator = Orchestrator(clients, None, "b", graph=graph, payload=seen.append)
        async with orchestrator:
            for request in "xy":
                await orchestrator.add_request(request, "prompt")
            await asyncio.sleep(0.001)
        assert [(each.stage, each.receivers, each.collected) for each in seen] == [
            ("a", {"b": 0}, None), ("b", {}, ()), ("a", {"b": 1}, None), ("b", {}, ()),
        ]  # fmt: skip

    run_virtual(main())


def test_or13_the_constructor_says_what_does_not_fit() -> None:
    with pytest.raises(ConfigError, match="closes a cycle"):
        Graph("ab", [Edge("a", "b"), Edge("b", "a")], "b")
    with pytest.raises(ConfigError, match="no stage is final"):
        Orchestrator([ScriptedClient()], lambda *_: None, [])
    with pytest.raises(ConfigError, match="there is no stage 7"):
        Orchestrator([ScriptedClient()], lambda *_: None, [7])
    with pytest.raises(TypeError, match="needs the methods"):
        Orchestrator([object()], lambda *_: None, [0])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="has no client"):
        Orchestrator({"a": []}, lambda *_: None, ["a"])
    with pytest.raises(ValueError, match="other final stages"):
        Orchestrator({"a": ScriptedClient()}, lambda *_: None, ["b"], graph=Graph("a", [], "a"))
    with pytest.raises(TypeError, match="needs a forward_fn"):
        Orchestrator([ScriptedClient(), ScriptedClient()], None, [1])


def test_or13_one_stage_has_nothing_to_forward() -> None:
    client = ScriptedClient()

    async def main() -> None:
        async with Orchestrator([client], None, [0]) as orchestrator:
            await orchestrator.add_request("r", "prompt")
            await asyncio.sleep(0.001)
            client.put("r", "x", True)
            output = await orchestrator.next_output(1)
            assert (output.data, output.terminal) == ("x", Terminal.END)

    run_virtual(main())
