"""What is wrong with a file as YAML, each with its exact place."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stagewire import ConfigError
from stagewire.config import Config, Document, load_document
from stagewire.config.tree import LIMITS

Faults = Callable[..., list[str]]
HEAD = "version: 1\npipeline: flow\n"


def read(folder: Path, *texts: str) -> Document:
    paths = [folder / f"{number}.yaml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8", newline="")
    return load_document(paths, {})


SYNTAX = {
    "unclosed quote": (
        "a: 'x\n\n",
        (
            "a.yaml:3:1: syntax error: found unexpected end of stream"
            " (while scanning a quoted scalar that begins at line 1)"
        ),
    ),
    "two values in a line": ("a: b: c\n", "a.yaml:1:5: syntax error: mapping values are not allowed here"),
    "unclosed list": ("a: [b, c", "a.yaml:1:9: syntax error: expected ',' or ']', but got '<stream end>'"),
    "tab": (
        "a:\n\tb: 1\n",
        (
            "a.yaml:2:1: syntax error: found character '\\t' that cannot start any token"
            "; indent with spaces, not with tabs"
        ),
    ),
    "reference in a flow list": (
        "a: [${env:B}]\n",
        "a.yaml:1:6: syntax error: expected ',' or ']', but got '{'; inside [ ] and { } put a text with ${…} in quotes",
    ),
    "unknown tag handle": ("a: !x!y z\n", "a.yaml:1:4: syntax error: found undefined tag handle '!x!'"),
    "scanner crash": (
        'a: 1\nb: "\\U00110000"\n',
        "a.yaml:2:1: syntax error after this place: chr() arg not in range(0x110000)",
    ),
    "control character": (
        "a: 1\r\nb: \x07\n",
        "a.yaml:2:4: the character U+0007 is not allowed in YAML; remove it",
    ),
    "lone surrogate": (b"a: \xed\xa0\x80", "a.yaml:1:4: is not UTF-8 (byte 0xed); save the file as UTF-8"),
    "latin-1": (b"# x\nname: caf\xe9\n", "a.yaml:2:10: is not UTF-8 (byte 0xe9); save the file as UTF-8"),
    "utf-16": ("a: 1".encode("utf-16"), "a.yaml:1:1: is not UTF-8 (byte 0xff); save the file as UTF-8"),
    "empty": ("", "a.yaml:1:1: the file is empty; a configuration begins with 'version: 1'"),
    "only comments": ("# a\n---\n", "a.yaml:1:1: the file is empty; a configuration begins with 'version: 1'"),
    "a list": ("# a\n- b\n", "a.yaml:2:1: the top level must be a map of keys, not a list"),
    "a text": ("hello", "a.yaml:1:1: the top level must be a map of keys, not a single value"),
    "two documents": (
        "a: 1\n---\nb: 2\n",
        "a.yaml:2:1: a second document begins; a configuration is one document",
    ),
}


@pytest.mark.parametrize("case", SYNTAX)
def test_a_file_that_is_no_configuration_is_one_located_fault(faults: Faults, case: str) -> None:
    text, expected = SYNTAX[case]
    assert faults(text) == [expected]


USABLE = {
    "duplicate key": (
        "limits:\n  requests: 1\n  requests: 2\n",
        "a.yaml:5:3: limits.requests: duplicate key; it is also at line 4, keep one of them",
    ),
    "duplicate key in a list": (
        "edges:\n- {from: x, to: x, from: y}\n",
        "a.yaml:4:20: edges[0].from: duplicate key; it is also at line 4, keep one of them",
    ),
    "foreign tag": ("limits: !mine {}\n", "a.yaml:3:9: limits: unsupported tag '!mine'; remove it"),
    "binary tag": ("name: !!binary aGk=\n", "a.yaml:3:7: name: unsupported tag '!!binary'; remove it"),
    "tag of another type": (
        "limits: {requests: !!int x}\n",
        "a.yaml:3:20: limits.requests: tag '!!int': 'x' is not an integer",
    ),
    "map tag on a list": ("limits: !!map [1]\n", "a.yaml:3:9: limits: unsupported tag '!!map'; remove it"),
    "unknown alias": ("name: *it\n", "a.yaml:3:7: name: alias '*it' has no anchor '&it' before it"),
    "alias inside its anchor": (
        "edges: &it\n  - *it\n",
        "a.yaml:4:5: edges[0]: alias '*it' stands inside what it refers to",
    ),
    "list as a key": ("? [a]\n: b\n", "a.yaml:3:3: a key must be a single text, not a map or a list"),
    "empty key": ("limits:\n  : 1\n", "a.yaml:4:3: limits: a key must not be empty"),
    "long key": (f"? {'k' * 257}\n: 1\n", "a.yaml:3:3: a key must not be longer than 256 characters"),
    "merge of a text": ("limits:\n  <<: x\n", "a.yaml:4:7: limits.<<: '<<' takes a map or a list of maps"),
}


@pytest.mark.parametrize("case", USABLE)
def test_a_fault_that_leaves_the_rest_usable_is_reported_beside_the_others(faults: Faults, case: str) -> None:
    text, expected = USABLE[case]
    found = faults(HEAD + text + "stages: {x: {use: read}}\n")
    assert expected in found
    assert any("stages.x.path: is required" in fault for fault in found)
    assert len(found) == 2


def test_faults_of_all_files_come_together_in_the_order_of_the_files(faults: Faults) -> None:
    found = faults("a: [", "b: 1\nb: 2\n", "c: 'x")
    assert [fault.split(":")[0] for fault in found] == ["a.yaml", "b.yaml", "c.yaml"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.yaml", "no such file; check the path"),
        (".", "is a directory; name the file in it"),
        ("nul\0", "cannot be read: embedded null byte"),
        ("n" * 300, "cannot be read: File name too long"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, message: str) -> None:
    path = tmp_path / name
    with pytest.raises(ConfigError) as caught:
        load_document([path], {})
    assert str(caught.value) == f"{path}:1:1: {message}"


def test_no_file_at_all_is_a_fault() -> None:
    with pytest.raises(ConfigError, match="no configuration file was named"):
        load_document([], {})


def test_every_key_and_value_has_its_place(tmp_path: Path) -> None:
    document = read(tmp_path, "# é\r\na:\r\n  'b c': [1, \"two\"]\r\n")
    assert document.data == {"a": {"b c": [1, "two"]}}
    places = {path: (found.line, found.column) for path, found in document.origins.items()}
    assert places == {
        (): (2, 1),
        ("a",): (3, 3),
        ("a", "b c"): (3, 10),
        ("a", "b c", 0): (3, 11),
        ("a", "b c", 1): (3, 14),
    }
    assert {path: (found.line, found.column) for path, found in document.keys.items()} == {
        ("a",): (2, 1),
        ("a", "b c"): (3, 3),
    }


def test_a_byte_order_mark_moves_no_column(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeffa: 1\n").keys[("a",)].column == 1


def test_keys_are_texts_as_they_are_written(tmp_path: Path) -> None:
    document = read(tmp_path, "1: a\ntrue: b\nnull: c\n0x1: d\n")
    assert document.data == {"1": "a", "true": "b", "null": "c", "0x1": "d"}


def test_anchors_and_merge_keys_work_and_keep_the_place_of_their_origin(tmp_path: Path) -> None:
    document = read(
        tmp_path,
        "base: &base {x: 1, y: 2}\nmore: &more\n  z: 3\n  x: 9\nboth:\n  <<: [*base, *more]\n  y: 5\nagain: *base\n",
    )
    assert document.data["both"] == {"y": 5, "x": 1, "z": 3}
    assert document.data["again"] == {"x": 1, "y": 2}
    assert document.origins[("both", "z")].line == 3
    assert document.origins[("again", "x")].line == 1


def test_a_quoted_merge_key_is_a_key(tmp_path: Path) -> None:
    assert read(tmp_path, "a: {'<<': {b: 1}}\n").data == {"a": {"<<": {"b": 1}}}


def test_aliases_are_separate_in_the_data(tmp_path: Path) -> None:
    data = read(tmp_path, "a: &x [1]\nb: *x\n").data
    data["a"].append(2)
    assert data["b"] == [1]


def test_a_fault_in_an_anchor_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, "a: &x ['${env:NONE}']\nb: *x\nc: *x\n")
    assert len(caught.value.problems) == 1


def laughs(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return HEAD + "\n".join(lines)


BOMBS: dict[str, tuple[str, str]] = {
    "billion laughs": (
        laughs(12),
        "a.yaml:7:30: holds more than 50,000 values once its anchors are expanded; make it smaller",
    ),
    "merged laughs": (
        laughs(4) + "\nm:\n" + "".join(f"  k{n}: *a3\n" for n in range(10)),
        "a.yaml:12:7: holds more than 50,000 values once its anchors are expanded; make it smaller",
    ),
    "flat": (
        "- 1\n" * 60_000,
        "a.yaml:50000:3: holds more than 50,000 values once its anchors are expanded; make it smaller",
    ),
    "deep list": ("a: " + "[" * 100_000, "a.yaml:1:67: is nested deeper than 64 levels"),
    "deep dashes": ("- " * 100_000, "a.yaml:1:129: is nested deeper than 64 levels"),
    "deep questions": ("? " * 100_000, "a.yaml:1:129: is nested deeper than 64 levels"),
    "deep by anchors": (
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 100)),
        "a.yaml:64:12: is nested deeper than 64 levels",
    ),
    "large": ("#" * (LIMITS.bytes + 1), "a.yaml:1:1: is larger than 524,288 bytes; is it a configuration?"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_a_yaml_bomb_is_defused_where_it_grows_too_large(faults: Faults, case: str) -> None:
    text, expected = BOMBS[case]
    began = time.perf_counter()
    assert faults(text) == [expected]
    assert time.perf_counter() - began < 10


def test_a_large_ordinary_file_is_read(tmp_path: Path) -> None:
    document = read(tmp_path, "".join(f"key{number}: value\n" for number in range(5_000)))
    assert len(document.data) == 5_000


def test_a_configuration_that_uses_anchors_loads(load: Callable[..., Config]) -> None:
    config = load(HEAD + "stages:\n  a: &a {use: tone, wpm: 7}\n  b: {<<: *a, wpm: 8}\n  c: *a\n")
    assert [block.options.wpm for block in config.options.stages.values()] == [7, 8, 7]  # type: ignore[attr-defined]
