"""What is not a valid plugin, and whom the message blames."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from stagewire import Options, Provider, hookimpl


def reason(make: Any, plugin: object) -> str:
    catalog = make.catalog(make.candidate("echo", plugin))
    (record,) = catalog.plugins()
    assert record.state == "broken"
    assert not catalog.commands()
    assert "STAGEWIRE_PLUGINS_BLOCK=echo" in record.reasons[0]
    return str(record.reasons[0])


def test_an_unknown_hook_is_named_with_the_one_that_was_meant(make: Any) -> None:
    text = reason(make, make.plugin("echo.say", stagewire_stage=lambda: None))
    assert "there is no hook 'stagewire_stage'; did you mean 'stagewire_stages'?" in text


def test_an_unknown_hook_unlike_any_lists_those_that_exist(make: Any) -> None:
    assert "the hooks are stagewire_stages, " in reason(make, make.plugin("echo.say", unrelated=lambda: None))


def test_a_hook_with_parameters_is_refused_by_name(make: Any) -> None:
    text = reason(make, make.plugin(stagewire_stages=lambda config: []))
    assert "stagewire_stages" in text
    assert "'config'" in text
    assert "\n" not in text


def test_a_hook_without_its_mark_is_found(make: Any) -> None:
    def unmarked() -> list[Any]:
        return []

    plugin = make.plugin("echo.say")
    plugin.stagewire_commands = unmarked
    assert "stagewire_commands lacks its mark; put @hookimpl" in reason(make, plugin)


def test_a_plugin_without_any_hook_is_told_what_a_hook_is(make: Any) -> None:
    assert "it implements no hook; mark one of stagewire_stages" in reason(make, ModuleType("empty"))


def test_a_class_is_no_plugin_but_its_instance_is(make: Any, states: Any) -> None:
    class Plugin:
        @hookimpl
        def stagewire_stages(self) -> list[Provider[Any]]:
            return [Provider(name="echo.say", summary="", factory=lambda _options, _context: None)]

    assert "names the class Plugin; name a module or an instance" in reason(make, Plugin)
    assert states(make.catalog(make.candidate("echo", Plugin()))) == ["echo:loaded"]


def test_a_hook_may_be_a_generator(make: Any, states: Any) -> None:
    def stages() -> Any:
        yield make.provider("echo.say")

    assert states(make.catalog(make.candidate("echo", make.plugin(stagewire_stages=stages)))) == ["echo:loaded"]


class Unfinished(Options):
    missing: NoSuchType  # type: ignore[name-defined]  # noqa: F821 — that is the fault


async def _coroutine() -> list[Any]:
    return []


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        (lambda: None, "stagewire_stages(): it returned None; return a list"),
        (lambda: 7, "stagewire_stages(): it returned int; return a list"),
        (lambda: "echo.say", "stagewire_stages(): it returned str; return a list"),
        (lambda: ["echo.say"], "stagewire_stages(): it returned a str in its list; it takes Provider objects only"),
        (_coroutine, "stagewire_stages(): it is a coroutine function; hooks only register and are plain functions"),
    ],
    ids=["none", "number", "text", "no provider", "coroutine"],
)
def test_a_hook_that_returns_something_else_is_told(make: Any, hook: Any, expected: str) -> None:
    assert expected in reason(make, make.plugin(stagewire_stages=hook))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": "two words"}, "needs a name without spaces"),
        ({"name": ""}, "needs a name without spaces"),
        ({"name": None}, "needs a name without spaces"),
        ({"options": dict}, "needs an options model derived from stagewire.Options"),
        ({"options": Unfinished}, "all of whose types exist"),
        ({"factory": "no"}, "needs a callable factory"),
    ],
)
def test_a_provider_with_a_wrong_field_is_told(make: Any, fields: dict[str, Any], expected: str) -> None:
    assert expected in reason(make, make.plugin(make.provider(**({"name": "echo.say"} | fields))))


def test_a_name_twice_in_one_hook_is_refused(make: Any) -> None:
    assert "stagewire_stages(): it returned echo.say more than once" in reason(
        make, make.plugin("echo.say", "echo.say")
    )


def test_a_command_that_is_none_is_refused(make: Any) -> None:
    text = reason(make, make.plugin(stagewire_commands=lambda: [print]))
    assert "stagewire_commands(): it returned a builtin_function_or_method in its list" in text
