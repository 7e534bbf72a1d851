"""No text makes loading raise anything but ConfigError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagewire import ConfigError, Problem
from stagewire.config import Config, effective

VALID = """\
version: 1
pipeline: flow
name: "a ${env:HOME:-name}"
stages:
  x: {use: tone, wpm: 5, volume: 0.5, tags: [a, b], gains: {left: 1}}
  'y z':
    use: read
    path: in.txt
  w: &w
    use: tone
    shape: sine
  v:
    <<: *w
    title: |
      two
edges:
- x -> w
- {from: x, to: v}
limits: {requests: 0x10, timeout: 1e3}
transport: {use: wrap, inner: {use: broker, token: !!str 12, login: {password: long enough}}}
logging:
  level: debug
"""

WORDS = (
    "${env:", "}", "<<: ", "*w", "&w ", "!!int ", "!x ", "---\n", "...\n", "null", "\ufeff", "\r\n", "\x85", "\u2028",
    "\0", "use: ", "1e999", "0x", "  ", "- ", "? ", ".nan", "🎵", "%YAML 1.1\n",
)  # fmt: skip
PIECES = st.sampled_from([*"\n\t :-[]{},&*!|>'\"%@`#?~$\\", *WORDS])
ENVIRON = {"HOME": "home"}


def survive(load: Callable[..., Config], *texts: str | bytes) -> None:
    """Load; a ConfigError must have faults, each in its place, and a configuration must be showable."""
    problems: tuple[Problem, ...] | None = None
    config = None
    try:
        config = load(*texts, environ=ENVIRON)
    except ConfigError as error:
        problems = error.problems
    if config is None:
        assert problems
        assert all(problem.location is not None for problem in problems)
    else:
        assert effective(config)


def test_the_seed_is_valid(load: Callable[..., Config]) -> None:
    load(VALID, environ={})


@given(st.text())
def test_any_text_loads_or_is_a_config_error(load: Callable[..., Config], text: str) -> None:
    survive(load, text.encode("utf-8", "surrogatepass"))


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_yaml_soup_loads_or_is_a_config_error(load: Callable[..., Config], text: str) -> None:
    survive(load, text)


@given(st.binary())
def test_any_bytes_load_or_are_a_config_error(load: Callable[..., Config], data: bytes) -> None:
    survive(load, data)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    text = VALID
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + draw(st.one_of(PIECES, st.text(max_size=3), st.just(""))) + text[end:]
    return text


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(mutations())
def test_any_mutated_file_loads_or_is_a_config_error(load: Callable[..., Config], text: str) -> None:
    survive(load, text.encode("utf-8", "surrogatepass"))


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["tone", "x", "", "use"]), st.text(max_size=5)
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["use", "wpm", "x", "from", "to", "inner", "pause"]), inner, max_size=4),
    ),
    max_leaves=15,
)
SECTIONS = st.sampled_from(
    ["version", "pipeline", "name", "stages", "edges", "limits", "spare", "transport", "kv", "lease", "logging", "zzz"]
)


def flow(value: Any) -> str:
    """Write data as flow YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return (
        {None: "null", True: "true", False: "false"}.get(value, str(value))
        if not isinstance(value, float)
        else str(value)
    )


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(SECTIONS, DATA, max_size=5), st.dictionaries(SECTIONS, DATA, max_size=2))
def test_any_data_in_any_section_loads_or_is_a_config_error(
    load: Callable[..., Config], data: dict[str, Any], over: dict[str, Any]
) -> None:
    head = {"version": 1, "pipeline": "flow", "stages": {"x": {"use": "tone"}}}
    texts = ["\n".join(f"{key}: {flow(value)}" for key, value in {**head, **data}.items())]
    if over:
        texts.append("\n".join(f"{key}: {flow(value)}" for key, value in over.items()))
    survive(load, *[text.encode("utf-8", "surrogatepass") for text in texts])
