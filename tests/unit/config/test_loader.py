"""Loading as a whole: every fault at once, blocks bound, checks run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from pydantic import AliasChoices, ConfigDict, Field, field_validator

from stagewire import ConfigError, Options, PluginError, Problem, Provider, StageBlock, UseBlock
from stagewire.config import Config, UnresolvedBlockError
from stagewire.config.document import MOST_PROBLEMS
from stagewire.registry import Catalog

Faults = Callable[..., list[str]]
Make = Callable[..., Provider[Any]]
HEAD = "version: 1\npipeline: flow\n"


def test_a_valid_file_has_defaults_and_bound_blocks(load: Callable[..., Config], catalog: Catalog) -> None:
    config = load(
        HEAD + "stages:\n  x: {use: tone, wpm: 5, replicas: 2}\n  y: {use: read, path: in.txt}\nedges: [x -> y]\n"
    )
    assert config.kind is catalog.get("pipelines", "flow")
    stages = config.options.stages  # type: ignore[attr-defined]
    assert (stages["x"].provider.name, stages["x"].options.wpm, stages["x"].replicas) == ("tone", 5, 2)
    assert stages["y"].options.path.name == "in.txt"
    assert (config.transport.provider.name, config.kv.provider.name, config.lease.provider.name) == (
        "local",
        "memory",
        "memory",
    )
    assert config.logging.level == "info"
    assert config.options.edges[0].source == "x"  # type: ignore[attr-defined]


def test_nested_blocks_are_bound_in_maps_lists_options_and_defaults(load: Callable[..., Config]) -> None:
    text = "stages: {}\nspare: [none, {use: tone}]\ntransport: {use: wrap, inner: {use: wrap}}\n"
    config = load(HEAD + text)
    outer: Any = config.transport.options
    assert outer.inner.options.inner.provider.name == "local"
    assert config.options.spare[1].options.wpm == 20  # type: ignore[attr-defined]


def test_every_level_of_fault_comes_at_once_in_file_order(faults: Faults) -> None:
    found = faults(
        "version: 1\npipeline: flow\nstages:\n"
        "  x: {use: tone, wpn: 5, wpm: fast}\n"
        "  y: {use: tome, replicas: 0}\n"
        "  y: {use: tone}\n"
        "  z: {use: '${env:NONE}'}\n"
        "edges: [{from: x, to: zz}]\n"
        "limits: {requests: 0, extra: 1}\n"
        "logging: {levle: info}\n"
        "transport: {use: broker, port: x}\n"
    )
    assert [fault.split(": ")[0] + " " + fault.split(": ")[1] for fault in found] == [
        "a.yaml:4:18 stages.x.wpn",
        "a.yaml:4:31 stages.x.wpm",
        "a.yaml:5:12 stages.y.use",
        "a.yaml:5:28 stages.y.replicas",
        "a.yaml:6:3 stages.y",
        "a.yaml:7:12 stages.z.use",
        "a.yaml:8:23 edges[0].to",
        "a.yaml:9:20 limits.requests",
        "a.yaml:9:23 limits.extra",
        "a.yaml:10:11 logging.levle",
        "a.yaml:11:32 transport.port",
    ]


def test_provider_faults_come_together_with_faults_that_leave_no_model(faults: Faults) -> None:
    found = faults(HEAD + "stages:\n  x: {use: tone, wpm: fast}\nedges: 5\nspare: [{use: nothing}]\n")
    assert [fault.split(": ")[1] for fault in found] == ["stages.x.wpm", "edges", "spare[0].use"]


def test_faults_of_one_place_are_all_told_and_those_of_an_anchor_once(faults: Faults) -> None:
    assert faults(HEAD + "stages:\n  x: &x {use: tone, wpm: a}\n  y: *x\nedges: [{}]\n") == [
        "a.yaml:4:26: stages.x.wpm: must be an integer, got 'a'",
        "a.yaml:6:9: edges[0].from: is required",
        "a.yaml:6:9: edges[0].to: is required",
    ]


def test_a_missing_section_points_at_its_owner(faults: Faults) -> None:
    assert faults(HEAD) == ["a.yaml:1:1: stages: is required"]
    assert faults(HEAD + "stages:\n  x:\n    use: read\n") == ["a.yaml:4:3: stages.x.path: is required"]


def test_a_file_without_a_kind_names_the_kinds(faults: Faults) -> None:
    assert faults("# nothing yet\nname: x\n") == [
        "a.yaml:2:1: pipeline: is required: the pipeline's kind ('empty', 'flow')",
        "a.yaml:2:1: version: is required",
    ]


def test_an_unknown_kind_does_not_hide_the_faults_of_other_sections(faults: Faults) -> None:
    found = faults("version: 1\npipeline: flaw\nwhatever: 1\nkv: {use: memory, size: 1}\n")
    assert found[0].startswith("a.yaml:2:11: pipeline: no pipeline kind is called 'flaw'; did you mean 'flow'?")
    assert found[1:] == ["a.yaml:4:19: kv.size: unknown key; known here: 'use'"]


@pytest.mark.parametrize("kind", ["[flow]", "5", "null", "{a: b}"])
def test_a_kind_of_the_wrong_type_is_told_once(faults: Faults, kind: str) -> None:
    found = faults(f"version: 1\npipeline: {kind}\n")
    assert len(found) == 1
    assert "pipeline: must be text, got" in found[0]


def test_a_kind_without_options_takes_no_sections(faults: Faults) -> None:
    assert faults("version: 1\npipeline: empty\nstages: {}\n") == [
        (
            "a.yaml:3:1: stages: unknown key; "
            "known here: 'kv', 'lease', 'logging', 'metrics', 'name', 'pipeline', 'transport', 'version'"
        )
    ]


def test_a_check_of_a_block_is_located_below_the_block(faults: Faults) -> None:
    assert faults(HEAD + "stages:\n  x:\n    use: tone\n    wpm: 13\n") == [
        "a.yaml:6:10: stages.x.wpm: 13 is bad luck; take 12"
    ]


def test_a_check_of_the_kind_sees_bound_blocks_and_points_at_the_deepest_place_there_is(faults: Faults) -> None:
    assert faults(HEAD + "stages:\n  x:\n    use: noop\n  y: {use: tone, loud: true, replicas: 2}\n") == [
        "a.yaml:4:3: stages.x: the stage does nothing",
        "a.yaml:6:40: stages.y.replicas: too loud",
    ]


@pytest.mark.parametrize(
    "fault", ["limits: {request: 1}", "limits: {requests: 0}", "logging: {level: 3}", "transport: {use: x}", "zzz: 1"]
)
def test_faults_elsewhere_do_not_hide_what_the_check_finds(faults: Faults, fault: str) -> None:
    found = faults(HEAD + f"stages: {{x: {{use: tone, wpm: 0}}}}\nedges: [x -> y]\n{fault}\n")
    assert len(found) == 3
    assert "no stage 'y'" in found[1]


def test_a_fault_in_what_the_check_relies_on_keeps_it_from_guessing(faults: Faults) -> None:
    found = faults(HEAD + "stages: [x]\nedges: [x -> y]\n")
    assert found == ["a.yaml:3:9: stages: must be a map, got a list"]


def test_a_block_of_a_broken_plugin_is_a_fault_whose_cause_is_kept(
    load: Callable[..., Config], catalog: Catalog
) -> None:
    class Broken(Catalog):
        def get(self, axis: Any, name: str) -> Provider[Any]:
            if axis == "stages":
                raise PluginError(f"stage {name!r} cannot be used: its plugin is broken") from ImportError(
                    "no module x"
                )
            return catalog.get(axis, name)

    with pytest.raises(ConfigError, match=r"4:12: stages.x.use: stage 'tone' cannot be used") as caught:
        load(HEAD + "stages:\n  x: {use: tone}\n", using=Broken.of())
    assert isinstance(caught.value.__cause__, PluginError)
    assert isinstance(caught.value.__cause__.__cause__, ImportError)


class Faulty(Options):
    """Options whose validator is a programming error."""

    size: int = 1

    @field_validator("size")
    @classmethod
    def _crash(cls, value: int) -> int:
        raise KeyError(value)


class Stages(Options):
    """A kind with one block."""

    stage: StageBlock


def _crash(_options: Any, _catalog: Catalog) -> Iterator[Problem]:
    yield Problem("a first fault", ("stage",))
    raise RuntimeError("bug")


def kinds(make: Make, kind: Provider[Any], *stages: Provider[Any]) -> Catalog:
    parts = {"transports": [make("local")], "kv_backends": [make("memory")], "lease_backends": [make("memory")]}
    return Catalog.of(pipelines=[kind], stages=stages, **parts)


class Chosen(Options):
    """A kind with a name that refers to something."""

    names: list[str]
    first: str = "a"
    mode: Literal["one", "all"] = "one"


@pytest.mark.parametrize("fault", ["first: 5", "mode: al"])
def test_a_check_is_not_run_on_defaults_in_place_of_names_and_choices(
    faults: Faults, make_provider: Make, fault: str
) -> None:
    def check(options: Chosen, _catalog: Catalog) -> Iterator[Problem]:
        if options.mode == "one" and options.first not in options.names:
            yield Problem("names nothing", ("first",))

    catalog = kinds(make_provider, make_provider("k", Chosen, check=check))
    assert len(faults(f"version: 1\npipeline: k\nnames: [b]\n{fault}\n", using=catalog)) == 1


def test_a_validator_that_crashes_is_a_fault_of_the_plugin(faults: Faults, make_provider: Make) -> None:
    catalog = kinds(make_provider, make_provider("k", Stages), make_provider("s", Faulty))
    assert faults("version: 1\npipeline: k\nstage: {use: s, size: 2}\n", using=catalog) == [
        "a.yaml:3:8: stage: cannot be validated: Faulty failed with KeyError: 2; this is a fault of the plugin"
    ]


def test_a_check_that_crashes_is_a_fault_of_the_plugin(faults: Faults, make_provider: Make) -> None:
    catalog = kinds(make_provider, make_provider("k", Stages, check=_crash), make_provider("s"))
    assert faults("version: 1\npipeline: k\nstage: {use: s}\n", using=catalog) == [
        "a.yaml:1:1: the check of 'k' failed with RuntimeError: bug; this is a fault of the plugin",
        "a.yaml:3:8: stage: a first fault",
    ]


class Endless(Options):
    """Options whose default holds a block of the same provider."""

    inner: StageBlock = StageBlock(use="s")


def test_blocks_that_hold_each_other_for_ever_are_a_fault(faults: Faults, make_provider: Make) -> None:
    catalog = kinds(make_provider, make_provider("k", Stages), make_provider("s", Endless))
    found = faults("version: 1\npipeline: k\nstage: {use: s}\n", using=catalog)
    assert len(found) == 1
    assert "blocks are nested deeper than 64 levels" in found[0]


def test_defaults_are_not_shared_between_configurations(load: Callable[..., Config], make_provider: Make) -> None:
    class Outer(Options):
        inner: StageBlock = StageBlock(use="s")

    catalog = kinds(make_provider, make_provider("k", Outer), make_provider("s"))
    first, second = (load("version: 1\npipeline: k\n", using=catalog) for _ in range(2))
    assert first.options.inner is not second.options.inner  # type: ignore[attr-defined]


def test_thousands_of_faults_are_counted_and_the_first_are_shown(faults: Faults) -> None:
    found = faults(HEAD + "stages: {}\n" + "".join(f"key{number}: 1\n" for number in range(3_000)))
    assert len(found) == MOST_PROBLEMS + 1
    assert found[0].startswith("a.yaml:4:1: key0: unknown key")
    assert found[-1] == "2800 more faults; mend these first"


def test_thousands_of_blocks_at_fault_end_soon(faults: Faults) -> None:
    stages = "".join(f"  s{number}: {{use: nowhere}}\n" for number in range(2_000))
    assert len(faults(HEAD + "stages:\n" + stages)) == MOST_PROBLEMS


def test_messages_are_bounded(faults: Faults) -> None:
    text = "x" * 100_000
    found = faults(HEAD + f"stages: {{x: {{use: {text}, replicas: {text}}}}}\nlimits: {{requests: {text}}}\n")
    assert len(found) == 3
    assert all(len(fault) < 1_200 for fault in found)


def test_a_block_that_was_not_loaded_says_so() -> None:
    block = StageBlock(use="tone")
    with pytest.raises(UnresolvedBlockError, match="use: tone"):
        _ = block.provider
    with pytest.raises(UnresolvedBlockError, match="use: tone"):
        _ = block.options


def test_an_alias_is_the_name_of_a_field_everywhere(load: Callable[..., Config], make_provider: Make) -> None:
    class Named(Options):
        model_config = ConfigDict(populate_by_name=True)
        block: StageBlock = Field(validation_alias=AliasChoices("run", "do"))

    catalog = kinds(make_provider, make_provider("k", Named), make_provider("s", Faulty))
    for name in ("run", "do", "block"):
        with pytest.raises(ConfigError, match=rf"{name}\.zzz: unknown key"):
            load(f"version: 1\npipeline: k\n{name}: {{use: s, zzz: 1}}\n", using=catalog)


def test_blocks_of_several_types_on_the_same_data_are_told_once(faults: Faults, make_provider: Make) -> None:
    class Other(UseBlock):
        axis = "stages"
        speed: int

    class Either(Options):
        part: StageBlock | Other
        size: int

    catalog = kinds(make_provider, make_provider("k", Either), make_provider("s"))
    found = faults("version: 1\npipeline: k\npart: {use: t, speed: 1}\n", using=catalog)
    assert [fault.split(":")[3] for fault in found] == [" size", " part.use"]
    found = faults("version: 1\npipeline: k\npart: {use: s, speed: 1}\n", using=catalog)
    assert [fault.split(":")[3] for fault in found] == [" size"]
