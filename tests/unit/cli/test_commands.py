"""The commands beside run."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from pydantic import ConfigDict, Field

import stagewire
from stagewire import Extra, Options, Provider, hookimpl


def plugin_with(**hooks: Any) -> ModuleType:
    module = ModuleType("acme")
    for name, function in hooks.items():
        setattr(module, name, hookimpl(function))
    return module


def needy() -> list[Provider[Any]]:
    extra = Extra("rabbitmq", ("no_such_driver",))
    return [Provider(name="rabbit", summary="Hops.", factory=lambda _options, _context: None, extra=extra)]


def fails() -> list[Any]:
    raise ValueError("odd")


def test_help_lists_every_command_and_the_exit_statuses(stage: Any) -> None:
    result = stage("--help")
    assert result.status == 0
    for name in ("run", "check", "graph", "schema", "config", "plugins", "doctor", "version"):
        assert f"  {name} " in result.out
    assert "0    fine" in result.out
    assert "143  stopped cleanly by SIGTERM" in result.out


def test_version_is_printed_both_ways(stage: Any) -> None:
    assert stage("version").out == f"stagewire {stagewire.__version__}\n"
    assert stage("--version").out == f"stagewire {stagewire.__version__}\n"


def test_usage_faults_exit_2_on_one_line_with_a_hint(stage: Any) -> None:
    result = stage("rnu")
    assert result.status == 2
    assert "no command is called 'rnu'; did you mean 'run'?" in result.err
    assert stage("run").err == "error: Missing argument 'CONFIG'. (see `stagewire run --help`)\n"
    assert len(stage("run", "--inptu", "x").err.splitlines()) == 1


def test_a_plugins_command_is_there_and_a_missing_one_blames_its_plugin(stage: Any) -> None:
    @click.command("shout")
    def shout() -> None:
        click.echo("HELLO")

    acme = plugin_with(stagewire_commands=lambda: [shout])
    assert stage("shout", plugins={"acme": acme}).out == "HELLO\n"
    broken = plugin_with(stagewire_commands=lambda: [shout], stagewire_stages=fails)
    result = stage("shout", plugins={"acme": broken})
    assert result.status == 2
    assert "command 'shout' cannot be used: plugin 'acme' (given by the program) is broken" in result.err


def test_a_plugin_cannot_take_over_a_command(stage: Any) -> None:
    acme = plugin_with(stagewire_commands=lambda: [click.Command("version", callback=lambda: click.echo("mine"))])
    assert stage("version", plugins={"acme": acme}).out.startswith("stagewire ")


def test_check_accepts_a_sound_file(stage: Any) -> None:
    config = stage.config()
    result = stage("check", config)
    assert (result.status, result.err) == (0, "")
    assert result.out == f"{config}: ok, pipeline 'play' of kind 'play'\n"


def test_check_reports_every_fault_of_every_file(stage: Any) -> None:
    bad, good = stage.config("mood: x\nfial: y\n", "bad.yaml"), stage.config("", "good.yaml")
    worse = stage.config("transport: {use: lokal}\n", "worse.yaml")
    result = stage("check", bad, good, worse)
    assert result.status == 2
    assert [line.split(": ")[0] for line in result.err.splitlines()] == [
        f"{bad}:4:1",
        f"{bad}:5:1",
        f"{worse}:4:18",
    ]
    assert "did you mean 'local'?" in result.err
    assert "good.yaml: ok" in result.out


def test_check_lays_overlays_over_each_file(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "over.yaml").write_text("fail: never\n")
    result = stage("check", stage.config(), "-c", tmp_path / "over.yaml")
    assert result.status == 2
    assert f"{tmp_path / 'over.yaml'}:1:7: fail:" in result.err


def test_check_names_the_extra_that_is_missing(stage: Any) -> None:
    plugins = {"acme": plugin_with(stagewire_transports=needy), "play": stage._plugin}
    result = stage("check", stage.config("transport: {use: rabbit}\n"), plugins=plugins)
    assert result.status == 2
    assert ":4:18: transport.use:" in result.err
    assert 'pip install "stagewire[rabbitmq]"' in result.err


def test_check_names_the_broken_plugin_that_may_have_what_is_missing(stage: Any) -> None:
    plugins = {"acme": plugin_with(stagewire_stages=fails), "play": stage._plugin}
    result = stage("check", stage.config("kv: {use: acme}\n"), plugins=plugins)
    assert "KV backend 'acme' cannot be used: plugin 'acme' (given by the program) is broken" in result.err
    assert "ValueError: odd" in result.err


def test_check_builds_the_pipeline_and_tells_what_its_factory_says(stage: Any) -> None:
    def refuse(_options: object, _context: object) -> None:
        raise ValueError("no stage")

    kinds = [Provider(name="play", summary="", factory=refuse)]
    config = stage.config()
    result = stage("check", config, plugins={"play": plugin_with(stagewire_pipelines=lambda: kinds)})
    assert result.status == 2
    assert result.err == f"{config}: error: the pipeline kind 'play' cannot be built: ValueError: no stage\n"


def test_graph_prints_mermaid(stage: Any) -> None:
    assert stage("graph", stage.config()).out == "flowchart LR\n  a --> b\n"


def test_schema_covers_the_installed_kinds(stage: Any) -> None:
    text = json.dumps(json.loads(stage("schema").out))
    assert '"play"' in text
    assert "What the play does." in text


def test_config_show_prints_what_the_files_come_to(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "over.yaml").write_text("mode: chatty\n")
    result = stage("config", "show", stage.config(), "-c", tmp_path / "over.yaml")
    assert result.status == 0
    assert "pipeline: play" in result.out.splitlines()
    assert "mode: chatty" in result.out.splitlines()
    assert "#" not in result.out


def test_config_show_origin_says_where_each_value_comes_from(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "over.yaml").write_text("mode: chatty\n")
    result = stage("config", "show", "--origin", stage.config(), "-c", tmp_path / "over.yaml")
    lines = {line.split("  ")[0]: line.partition("# ")[2] for line in result.out.splitlines()}
    assert lines["mode: chatty"] == f"{tmp_path / 'over.yaml'}:1:7"
    assert lines["logging.level: error"] == f"{tmp_path / 'play.yaml'}:3:18"
    assert lines["fail: no" if "fail: no" in lines else 'fail: "no"'] == "default"


def test_plugins_lists_states_and_reasons(stage: Any) -> None:
    plugins = {"acme": plugin_with(stagewire_transports=needy), "oops": plugin_with(stagewire_stages=fails)}
    result = stage("plugins", plugins=plugins)
    assert result.status == 0
    assert result.out == stage("plugins", "list", plugins=plugins).out
    words = [line.split()[:2] for line in result.out.splitlines()]
    assert ["core", "loaded"] in words
    assert ["acme", "needs-extra"] in words
    assert ["oops", "broken"] in words
    assert 'pip install "stagewire[rabbitmq]"' in result.out


def test_plugins_list_for_programs(stage: Any) -> None:
    for arguments in (["plugins", "--json"], ["plugins", "list", "--json"]):
        listed = {each["name"]: each for each in json.loads(stage(*arguments).out)}
        assert listed["play"]["state"] == "loaded"
        assert listed["play"]["providers"] == {"pipelines": ["play", "gallery"]}
        assert listed["core"]["commands"] == [
            "check", "config", "doctor", "graph", "plugins", "run", "schema", "version",
        ]  # fmt: skip


def test_plugins_show_tells_a_plugin_and_its_namesake_with_options(stage: Any) -> None:
    result = stage("plugins", "show", "play")
    assert result.status == 0
    assert "plugin play" in result.out
    assert "pipeline kind play" in result.out
    assert [line.split(maxsplit=3) for line in result.out.splitlines()[-3:-1]] == [
        ["options", "type", "default"],
        ["mode", "string", '"copy"', "What the play does."],
    ]
    assert result.out.splitlines()[-1].split() == ["fail", '"no"', "|", '"yes"', '"no"']
    kind = json.loads(stage("plugins", "show", "play", "--json").out)[1]
    assert kind["options"]["properties"]["mode"]["default"] == "copy"
    assert kind["usable"]


class Part(Options):
    sizes: list[int] = Field(default=[], description="How large the parts are.")


class Whole(Options):
    parts: dict[str, Part] = Field(description="The parts, by name: " + "long " * 40)


def test_plugins_lists_what_each_offers_and_shows_nested_options_within_80_columns(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    summary = "Makes a whole of parts, and says so in a sentence that does not fit into one line."
    whole = [Provider(name="acme.whole", summary=summary, factory=lambda _options, _context: None, options=Whole)]
    plugins = {"acme": plugin_with(stagewire_stages=lambda: whole)}
    listed, shown = stage("plugins", plugins=plugins).out, stage("plugins", "show", "acme.whole", plugins=plugins).out
    assert all(len(line) <= 80 for line in (*listed.splitlines(), *shown.splitlines()))
    assert f"stage acme.whole {summary}" in " ".join(listed.split())
    rows = [line.split()[:5] for line in shown.splitlines()]
    assert ["parts", "map", "of", "Part", "required"] in rows
    assert ["sizes", "list", "of", "integer", "[]"] in rows


def test_a_part_of_a_name_finds_those_that_hold_it(stage: Any) -> None:
    result = stage("plugins", "show", "morse")
    assert result.status == 2
    assert "no plugin or provider is called 'morse'; did you mean 'morse.encode' or 'morse.tone'?" in result.err


@pytest.mark.parametrize("group", [(), ("config",)], ids=["program", "config"])
def test_a_group_without_a_command_prints_its_help_in_lines(stage: Any, group: tuple[str, ...]) -> None:
    result = stage(*group)
    assert result.status in {0, 2}  # as click has it
    lines = (result.out + result.err).splitlines()
    assert lines[0].startswith("Usage: stagewire ")
    assert "Options:" in lines


def test_plugins_show_of_something_unknown_exits_2(stage: Any) -> None:
    result = stage("plugins", "show", "plya")
    assert result.status == 2
    assert "no plugin or provider is called 'plya'; did you mean 'play'?" in result.err


def test_doctor_is_content_with_a_sound_installation(stage: Any) -> None:
    stage.environ = {"STAGEWIRE_PLUGINS_ALLOW": "local,memory"}
    result = stage("doctor")
    assert result.status == 0
    assert "all is well" in result.out
    assert "python" in result.out


def test_doctor_exits_1_when_something_is_broken_and_says_what(stage: Any) -> None:
    stage.environ = {"STAGEWIRE_PLUGINS_ALLOW": "local,memroy"}
    result = stage("doctor", plugins={"oops": plugin_with(stagewire_stages=fails)})
    assert result.status == 1
    assert "ValueError: odd" in result.out
    assert "names what is not installed: memroy" in result.out


def test_doctor_is_not_upset_by_a_missing_extra_and_tells_the_remedy(stage: Any) -> None:
    stage.environ = {"STAGEWIRE_PLUGINS_ALLOW": "local,memory"}
    result = stage("doctor", plugins={"acme": plugin_with(stagewire_transports=needy)})
    assert result.status == 0
    assert 'pip install "stagewire[rabbitmq]"' in result.out
    assert result.out.splitlines()[-1] == "all is well but for what an optional install would bring: acme"


def test_a_plugin_that_prints_at_import_does_not_spoil_standard_output(stage: Any) -> None:
    def chatty() -> list[Any]:
        print("hello from a plugin")  # noqa: T201 — what a plugin might do
        return []

    result = stage("plugins", "--json", plugins={"acme": plugin_with(stagewire_stages=chatty)})
    assert json.loads(result.out)
    assert "hello from a plugin" in result.err


def test_the_shell_can_complete_commands_of_plugins(stage: Any, monkeypatch: Any) -> None:
    stage.environ = {"_STAGEWIRE_COMPLETE": "bash_complete"}
    monkeypatch.setenv("COMP_WORDS", "stagewire pl")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert stage().out == "plain,plugins\n"


def test_options_whose_types_have_no_schema_are_shown_as_such(stage: Any) -> None:
    class Odd(Options):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        thing: ModuleType | None = None

    odd = [Provider(name="odd", summary="Odd.", factory=lambda _options, _context: None, options=Odd)]
    result = stage("plugins", "show", "odd", plugins={"acme": plugin_with(stagewire_stages=lambda: odd)})
    assert (result.status, result.err) == (0, "")
    assert "options that cannot be described" in result.out
