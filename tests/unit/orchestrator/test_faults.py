"""What is found wrong with a graph before it runs, each fault with its place (OR-13)."""

from __future__ import annotations

from typing import Any

import pytest

from stagewire import Problem
from stagewire_orchestrator.edges import Edge
from stagewire_orchestrator.faults import find_faults, find_idle


def edges(text: str) -> list[Edge]:
    """``ab`` is a batch edge, ``a~b`` a chunk edge."""
    return [Edge(each[0], each[-1], "chunk" if "~" in each else "batch") for each in text.split()]


def faults(text: str, finals: str, joins: Any = None, routes: Any = None, stages: str = "abcdef") -> list[Problem]:
    return find_faults(list(stages), edges(text), list(finals), joins or {}, dict.fromkeys(routes or "", lambda *_: ()))


def one(problems: list[Problem]) -> tuple[tuple[str | int, ...], str]:
    (problem,) = problems
    return problem.path, problem.message


def test_or13_a_good_graph_has_no_fault() -> None:
    assert faults("a~b a~c b~d c~d de df", "ef", {"d": "zip"}) == []


def test_or13_dangling_names_are_each_reported_with_a_hint() -> None:
    stages = ["sentences", "morse"]
    wrong = [Edge("sentence", "morse"), Edge("sentences", "tone")]
    problems = find_faults(stages, wrong, ["mors"], {}, {})
    assert [problem.path for problem in problems] == [("edges", 0, "from"), ("edges", 1, "to"), ("outputs", "mors")]
    assert "did you mean 'sentences'?" in problems[0].message
    assert "there are sentences, morse" in problems[1].message
    assert "did you mean 'morse'?" in problems[2].message


@pytest.mark.parametrize(
    ("text", "place", "way"),
    [("aa", 0, "a -> a"), ("ab ba", 1, "a -> b -> a"), ("ab bc cd db", 3, "b -> c -> d -> b")],
)
def test_or13_a_cycle_is_shown_at_the_edge_that_closes_it(text: str, place: int, way: str) -> None:
    path, message = one(faults(text, "a"))
    assert path == ("edges", place)
    assert f"closes a cycle: {way};" in message


def test_or13_a_second_edge_between_two_stages_is_refused() -> None:
    assert one(faults("ab ab", "b"))[0] == ("edges", 1)


def test_or13_a_graph_without_a_final_stage_is_refused() -> None:
    assert one(faults("ab", ""))[0] == ("outputs",)


@pytest.mark.parametrize("text", ["ab", "ab bc"])
def test_or13_a_join_of_fewer_than_two_edges_is_refused(text: str) -> None:
    assert one(faults(text, "b", {"b": "zip"}))[0] == ("stages", "b", "join")


def test_or13_edges_of_both_kinds_do_not_join() -> None:
    path, message = one(faults("ab ac b~d cd", "d"))
    assert (path, "of both kinds" in message) == (("edges", 3, "kind"), True)


def test_or13_a_zip_that_would_stall_is_refused() -> None:
    # c starts only when b has ended, b only when a has, and a is held back by d, whose chunks wait for c's.
    path, message = one(faults("a~b a~d bc c~e d~e", "e", {"e": "zip"}))
    assert path == ("edges", 3)
    assert "would stall: 'c' starts only when 'a' has ended" in message
    assert faults("a~b a~d b~c c~e d~e", "e", {"e": "zip"}) == []
    assert faults("a~b a~d bc ce de", "e", {"e": "zip"}) == []  # batch edges hold nobody back


@pytest.mark.parametrize("text", ["ab", ""])
def test_or13_a_route_needs_something_to_choose(text: str) -> None:
    assert one(faults(text, "b", routes="a"))[0] == ("stages", "a", "route")


def test_or13_what_a_route_may_leave_out_does_not_feed_a_chunk_join() -> None:
    path, message = one(faults("ab a~c b~d c~d", "d", routes="a"))
    assert (path, "may be left out" in message) == (("edges", 2, "kind"), True)


def test_or13_branches_of_a_route_cannot_be_zipped() -> None:
    path, message = one(faults("a~b a~c b~d c~d", "d", {"d": "zip"}, routes="a"))
    assert (path, "cannot be zipped" in message) == (("stages", "d", "join"), True)


def test_or13_unreachable_and_useless_stages_are_told() -> None:
    problems = list(find_idle(list("abcd"), edges("ab bc"), ["b"], "a"))
    assert [(problem.path, problem.message.partition(":")[0]) for problem in problems] == [
        (("stages", "c"), "its outputs go nowhere"),
        (("stages", "d"), "the stage is never reached"),
    ]
