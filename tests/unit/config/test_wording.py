"""What is wrong with a value, in plain words and at its exact place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Faults = Callable[..., list[str]]
HEAD = "version: 1\npipeline: flow\nstages:\n  x:\n    use: tone\n"

STAGE = {
    "wpm: fast": "6:10: stages.x.wpm: must be an integer, got 'fast'",
    "wpm: 1.5": "6:10: stages.x.wpm: must be an integer, got 1.5",
    "wpm: [1]": "6:10: stages.x.wpm: must be an integer, got a list",
    "wpm: {a: 1}": "6:10: stages.x.wpm: must be an integer, got a map",
    "wpm:\n      a: 1": "6:5: stages.x.wpm: must be an integer, got a map",
    "wpm:": "6:5: stages.x.wpm: must be an integer, got null",
    "wpm: 0": "6:10: stages.x.wpm: must be greater than 0, got 0",
    "wpm: 61": "6:10: stages.x.wpm: must be at most 60, got 61",
    "volume: loud": "6:13: stages.x.volume: must be a number, got 'loud'",
    "volume: -1": "6:13: stages.x.volume: must be at least 0, got -1",
    "volume: 1": "6:13: stages.x.volume: must be less than 1, got 1",
    "loud: maybe": "6:11: stages.x.loud: must be true or false, got 'maybe'",
    "loud: [true]": "6:11: stages.x.loud: must be true or false, got a list",
    "shape: squre": "6:12: stages.x.shape: must be 'sine' or 'square', got 'squre'; did you mean 'square'?",
    "shape: 3": "6:12: stages.x.shape: must be 'sine' or 'square', got 3",
    "title: 12": "6:12: stages.x.title: must be text, got 12; put it in quotes",
    "title: true": "6:12: stages.x.title: must be text, got true; put it in quotes",
    "title: x": "6:12: stages.x.title: must have at least 2 characters, got 'x'",
    "title: Untitled": "6:12: stages.x.title: 'Untitled' is no title; say what it is",
    "pause: atuo": "6:12: stages.x.pause: must be an integer or 'auto', got 'atuo'; did you mean 'auto'?",
    "pause: -1": "6:12: stages.x.pause: must be greater than 0 or 'auto', got -1",
    "tags: a": "6:11: stages.x.tags: must be a list, got 'a'",
    "tags: [a, b, c]": "6:11: stages.x.tags: must have at most 2 items, got a list",
    "tags: [a, 1]": "6:15: stages.x.tags[1]: must be text, got 1; put it in quotes",
    "tags:\n    - a\n    - 1": "8:7: stages.x.tags[1]: must be text, got 1; put it in quotes",
    "gains: {left: x}": "6:19: stages.x.gains.left: must be a number, got 'x'",
    "gains: {L: 1}": "6:13: stages.x.gains.L: is no valid key here: must match the pattern '^[a-z]+$', got 'L'",
    "server: nowhere": "6:13: stages.x.server: must be a URL (relative URL without a base), got 'nowhere'",
    "replicas: 0": "6:15: stages.x.replicas: must be at least 1, got 0",
    "wpn: 5": "6:5: stages.x.wpn: unknown key; did you mean 'wpm'?",
    "replcas: 5": "6:5: stages.x.replcas: unknown key; did you mean 'replicas'?",
    "WPM: 5": "6:5: stages.x.WPM: unknown key; did you mean 'wpm'?",
    "zzz: 5": "6:5: stages.x.zzz: unknown key; known here: 'gains', 'loud', 'pause', 'replicas', 'server', 'shape', "
    "'tags', 'title', 'use', 'volume', 'wpm'",
}


@pytest.mark.parametrize("line", STAGE)
def test_a_fault_of_a_stage_is_told_in_plain_words(faults: Faults, line: str) -> None:
    assert faults(f"{HEAD}    {line}\n") == [f"a.yaml:{STAGE[line]}"]


ROOT = {
    "version: 2": "3:10: version: must be 1, got 2",
    "version: '1'": "3:10: version: must be 1, got '1'",
    "name: 5": "3:7: name: must be text, got 5; put it in quotes",
    "stagez: {}": "3:1: stagez: unknown key; did you mean 'stages'?",
    "transprt: {}": "3:1: transprt: unknown key; did you mean 'transport'?",
    "zzz: 1": "3:1: zzz: unknown key; known here: 'edges', 'kv', 'lease', 'limits', 'logging', 'metrics', 'name', "
    "'pipeline', 'spare', 'stages', 'transport', 'version'",
    "limits: {requests: none}": "3:20: limits.requests: must be an integer, got 'none'",
    "limits: {reqests: 1}": "3:10: limits.reqests: unknown key; did you mean 'requests'?",
    "limits: {nme: 1}": "3:10: limits.nme: unknown key; known here: 'requests', 'timeout'",
    "limits: 3": "3:9: limits: must be a map, got 3",
    "logging: {level: warn}": "3:18: logging.level: must be 'debug', 'info', 'warning' or 'error', got 'warn'; "
    "did you mean 'warning'?",
    "kv: memory": "3:5: kv: must be a map, got 'memory'",
    "kv: {}": "3:5: kv.use: is required",
    "kv: {use: 1}": "3:11: kv.use: must be text, got 1; put it in quotes",
    "lease: {use: memry}": "3:14: lease.use: no lease backend is called 'memry'; did you mean 'memory'?",
    "transport: {use: local, port: 1}": "3:25: transport.port: unknown key; known here: 'use'",
    "transport: {use: broker, prt: 1}": "3:26: transport.prt: unknown key; did you mean 'port'?",
    "transport: {use: broker, login: {usr: a}}": "3:34: transport.login.usr: unknown key; did you mean 'user'?",
    "transport: {use: wrap, inner: {use: broker, port: x}}": "3:51: transport.inner.port: must be an integer, got 'x'",
    "transport: {use: wrap, inner: {use: lokal}}": "3:37: transport.inner.use: no transport is called 'lokal'; "
    "did you mean 'local'?",
    "edges: [{from: x}]": "3:9: edges[0].to: is required",
    "edges: [x -> ]": "3:9: edges[0].to: is required",
    "edges: [x -> longer than]": "3:9: edges[0].to: must have at most 9 characters, got 'longer than'",
    "edges: [x]": "3:9: edges[0]: must be a map, got 'x'",
    "edges: [{from: x, to: y}]": "3:23: edges[0].to: no stage 'y'",
    "edges: ['x -> xx']": "3:9: edges[0].to: no stage 'xx'; did you mean 'x'?",
    "spare: [{use: tone, replicas: x}]": "3:31: spare[0].replicas: must be an integer, got 'x'",
    "spare: [nine]": "3:9: spare[0]: must be a map or 'none', got 'nine'; did you mean 'none'?",
}


@pytest.mark.parametrize("line", ROOT)
def test_a_fault_of_another_section_is_told_in_plain_words(faults: Faults, line: str) -> None:
    head = "# a pipeline\n" if line.startswith("version") else "version: 1\n"
    found = faults(f"{head}pipeline: flow\n{line}\nstages: {{x: {{use: tone}}}}\n")
    assert [fault.partition("; installed")[0] for fault in found] == [f"a.yaml:{ROOT[line]}"]
