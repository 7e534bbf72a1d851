"""Faults of a file are found before anything is opened, all at once, each where it stands (OR-13)."""

from __future__ import annotations

from typing import Any

import pytest

GOOD = """stages:
  a: {use: lines}
  b: {use: up}
edges:
  - {from: a, to: b}
outputs:
  b: {file: b.txt}
"""


def test_or13_a_good_file_has_no_problem(lab: Any) -> None:
    assert lab.problems(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("from: a", "from: aa", ":8:12: edges[0].from: there is no stage 'aa'; did you mean 'a'?"),
        ("to: b", "to: c", ":8:19: edges[0].to: there is no stage 'c'; there are a, b"),
        ("  b: {file", "  bb: {file", ":10:7: outputs.bb: there is no stage 'bb'"),
        ("  b: {file: b.txt}", "  a: {file: a.txt}", ":6:6: stages.b: its outputs go nowhere"),
        ("{from: a, to: b}", "{from: b, to: b}", "edges[0]: the edge closes a cycle: b -> b"),
        ("  b: {use: up}", "  b: {use: up}\n  c: {use: up, final: true}", ":7:6: stages.c: the stage is never reached"),
        ("{use: up}", "{use: up, join: zip}", "stages.b.join: join needs two or more edges to 'b', and there are 1"),
        ("{use: lines}", "{use: lines, route: copy}", "stages.a.route: route needs two or more edges from 'a'"),
        ("{use: lines}", "{use: lines, route: named}", "stages.a.route: route needs two or more edges from 'a'"),
        ("{use: up}", "{use: role}", "stages.b.use: 'role' is the role csp.producer of a csp pipeline"),
        ("b.txt", "../b.txt", "outputs.b.file: the file must lie in the output directory"),
        ("b.txt", "/b.txt", "outputs.b.file: the file must lie in the output directory"),
        ("b.txt", "b.wav", "outputs.b.rate: a wav file needs a rate"),
        ("b.txt", "b.txt, rate: 8000", "outputs.b.rate: only a wav file has a rate"),
        (
            "  b: {file: b.txt}",
            "  b: {file: x}\n  a: {file: ./x}",
            "outputs.a.file: the output of 'b' goes to the",
        ),
        ("to: b}", "to: b, kind: chonk}", "edges[0].kind"),
        (
            "to: b}",
            "to: b, stall: 3}",
            ":8:29: edges[0].stall: only a chunk edge has stall: remove it, or make the edge",
        ),
        ("to: b}", "to: b, windw: 3}", "did you mean 'window'?"),
        ("{use: up}", "{use: up, replicas: 0}", "stages.b.replicas"),
    ],
)
def test_or13_each_fault_stands_where_it_is(lab: Any, old: str, new: str, says: str) -> None:
    async def produce(_request: Any) -> None: ...

    lab.stage("role", produce, capabilities=["csp.producer"])
    assert old in GOOD
    problems = lab.problems(GOOD.replace(old, new, 1))
    assert len(problems) == 1, problems
    assert says in problems[0]


def test_or13_several_faults_are_told_at_once(lab: Any) -> None:
    text = GOOD.replace("from: a", "from: x").replace("b.txt", "b.wav").replace("{use: up}", "{use: up, replicas: 0}")
    assert len(lab.problems(text.replace(", replicas: 0", ""))) == 2
    assert any("replicas" in problem for problem in lab.problems(text))


def test_or13_no_final_stage_is_told(lab: Any) -> None:
    (problem,) = lab.problems(GOOD.partition("outputs:")[0])
    assert "no stage is final" in problem


def test_the_graph_is_a_picture_of_the_file(lab: Any) -> None:
    app = lab.app()
    text = GOOD.replace("to: b}", "to: b, kind: chunk}").replace("use: up", "use: up, replicas: 2")
    assert app.build(lab.load(text, app)).graph() == (
        "flowchart LR\n"
        "    input([input]) --> s0\n"
        '    s0["a<br>lines"]\n'
        '    s1["b<br>up<br>× 2"]\n'
        "    s0 -->|chunk| s1\n"
        '    s1 --> f0[/"b.txt"/]\n'
    )
