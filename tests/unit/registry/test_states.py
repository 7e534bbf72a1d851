"""Each plugin's state, and what stays usable around one that went wrong."""

from __future__ import annotations

from typing import Any

import pytest

from stagewire import Extra, PluginError
from stagewire.registry import PluginState


def only(catalog: Any) -> Any:
    (record,) = catalog.plugins()
    return record


def test_a_plugin_that_works_is_loaded_and_its_names_are_known(make: Any) -> None:
    catalog = make.catalog(make.candidate("echo", make.plugin("echo.say", "echo.ask", commands=["shout"])))
    record = only(catalog)
    assert record.state is PluginState.LOADED
    assert record.providers == {"stages": ("echo.say", "echo.ask")}
    assert record.commands == ("shout",)
    assert record.reasons == ()
    assert catalog.names("stages") == ("echo.ask", "echo.say")
    assert catalog.get("stages", "echo.say").summary == "the echo.say"
    assert [command.name for command in catalog.commands()] == ["shout"]


@pytest.mark.parametrize(
    "error",
    [ImportError("no driver"), SystemExit(3), GeneratorExit(), SyntaxError("odd"), Exception()],
    ids=lambda error: type(error).__name__,
)
def test_whatever_an_import_raises_breaks_that_plugin_only(make: Any, states: Any, error: BaseException) -> None:
    catalog = make.catalog(make.candidate("bad", error, "a"), make.candidate("good", make.plugin("good.one"), "b"))
    assert states(catalog) == ["bad:broken", "good:loaded"]
    assert catalog.plugins()[0].error is error
    assert type(error).__name__ in catalog.plugins()[0].reasons[0]
    assert catalog.get("stages", "good.one")


def test_ctrl_c_during_discovery_is_not_swallowed(make: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        make.catalog(make.candidate("slow", KeyboardInterrupt()))


def test_a_hook_that_raises_takes_nothing_of_its_plugin_in(make: Any, states: Any) -> None:
    def fail() -> None:
        raise ZeroDivisionError("half way")

    plugin = make.plugin("echo.say", stagewire_transports=fail)
    catalog = make.catalog(make.candidate("echo", plugin))
    assert states(catalog) == ["echo:broken"]
    assert catalog.names("stages") == ()
    reason = only(catalog).reasons[0]
    assert reason.startswith("stagewire_transports(): ZeroDivisionError: half way (at ")
    assert f"{__file__}:" in reason


def test_using_a_declared_name_of_a_broken_plugin_raises_from_its_error(make: Any) -> None:
    error = ZeroDivisionError("half way")

    def fail() -> None:
        raise error

    catalog = make.catalog(make.candidate("acme", make.plugin("echo.say", stagewire_pipelines=fail)))
    with pytest.raises(
        PluginError, match=r"stage 'echo\.say' cannot be used: plugin 'acme' \(acme 1\.0\) is broken"
    ) as raised:
        catalog.get("stages", "echo.say")
    assert raised.value.__cause__ is error


def test_a_later_taker_of_a_name_is_in_conflict_and_keeps_its_other_names(make: Any, states: Any) -> None:
    first = make.candidate("one", make.plugin(make.provider("same", summary="first")), "alpha", "1.2")
    second = make.candidate("two", make.plugin(make.provider("same", summary="second"), "other"), "beta", "3.4")
    catalog = make.catalog(second, first)
    assert states(catalog) == ["one:loaded", "two:conflict"]
    assert catalog.get("stages", "same").summary == "first"
    assert catalog.get("stages", "other")
    (reason,) = catalog.plugins()[1].reasons
    assert "stage 'same' is offered by plugin 'one' (alpha 1.2) and by plugin 'two' (beta 3.4)" in reason
    assert "STAGEWIRE_PLUGINS_BLOCK=one" in reason


def test_the_same_name_on_two_axes_is_no_clash(make: Any, states: Any) -> None:
    plugin = make.plugin("redis", stagewire_kv_backends=lambda: [make.provider("redis")])
    catalog = make.catalog(make.candidate("redis", plugin))
    assert states(catalog) == ["redis:loaded"]
    assert catalog.names("kv_backends") == ("redis",)


def test_a_command_cannot_be_taken_over(make: Any, states: Any) -> None:
    ours = make.candidate("core", make.plugin(commands=["run"]), "stagewire", "0.1")
    theirs = make.candidate("aaa", make.plugin(commands=["run", "walk"]), "aaa", "1")
    catalog = make.catalog(theirs, ours)
    assert states(catalog) == ["core:loaded", "aaa:conflict"]
    assert [command.name for command in catalog.commands()] == ["run", "walk"]
    assert catalog.commands()[0] is ours.load().stagewire_commands()[0]


def test_a_missing_extra_is_told_with_its_remedy_and_costs_the_rest_nothing(make: Any, states: Any) -> None:
    needy = make.provider("acme.needy", extra=Extra("rabbitmq", ("no_such_driver", "json")))
    catalog = make.catalog(make.candidate("acme", make.plugin(needy, "acme.plain")))
    assert states(catalog) == ["acme:needs-extra"]
    assert catalog.names("stages") == ("acme.plain",)
    with pytest.raises(PluginError) as raised:
        catalog.get("stages", "acme.needy")
    assert str(raised.value) == (
        "stage 'acme.needy' needs 'no_such_driver', not installed here: pip install \"stagewire[rabbitmq]\""
    )


def test_an_extra_of_another_distribution_names_that(make: Any) -> None:
    needy = make.provider("acme.needy", extra=Extra("gpu", ("no_such_driver",), distribution="stagewire-acme"))
    catalog = make.catalog(make.candidate("acme", make.plugin(needy)))
    assert 'pip install "stagewire-acme[gpu]"' in only(catalog).reasons[0]


def test_a_conflict_outweighs_a_missing_extra_and_both_are_told(make: Any, states: Any) -> None:
    needy = make.provider("acme.needy", extra=Extra("x", ("no_such_driver",)))
    catalog = make.catalog(
        make.candidate("one", make.plugin("same"), "a"), make.candidate("two", make.plugin("same", needy), "b")
    )
    assert states(catalog) == ["one:loaded", "two:conflict"]
    assert len(catalog.plugins()[1].reasons) == 2
