"""What a person is told who asked for a name that cannot be had."""

from __future__ import annotations

from typing import Any

import pytest

from stagewire import PluginError
from stagewire.registry import AXES, Catalog, noun


def message(catalog: Catalog, name: str, axis: Any = "stages") -> str:
    with pytest.raises(PluginError) as raised:
        catalog.get(axis, name)
    text = str(raised.value)
    assert "\n" not in text
    return text


def test_an_unknown_name_gets_a_suggestion_the_list_and_a_remedy(make: Any) -> None:
    catalog = make.catalog(make.candidate("text", make.plugin("text.sentences", "text.words")))
    assert message(catalog, "text.sentence") == (
        "no stage is called 'text.sentence'; did you mean 'text.sentences'?; installed: text.sentences, text.words; "
        "install the plugin that offers it; `stagewire plugins` lists those here"
    )


def test_nothing_like_it_gets_no_suggestion(make: Any) -> None:
    catalog = make.catalog(make.candidate("text", make.plugin("text.sentences")))
    assert "did you mean" not in message(catalog, "zzz")
    assert "no transport is installed" in message(catalog, "zzz", "transports")


def test_a_long_list_is_cut(make: Any) -> None:
    catalog = make.catalog(make.candidate("many", make.plugin(*(f"s{number:02}" for number in range(30)))))
    text = message(catalog, "zzz")
    assert "s11 and 18 more" in text
    assert "s12" not in text


def test_a_stage_of_a_plugin_that_failed_to_import_names_that_plugin(make: Any) -> None:
    error = ImportError("no module named 'driver'")
    catalog = make.catalog(make.candidate("foo", error), make.candidate("good", make.plugin("good.one")))
    text = message(catalog, "foo.bar")
    assert text.startswith(
        "stage 'foo.bar' cannot be used: plugin 'foo' (acme 1.0) is broken: importing foo_package.plugin"
    )
    assert "no module named 'driver'" in text
    with pytest.raises(PluginError) as raised:
        catalog.get("stages", "foo.bar")
    assert raised.value.__cause__ is error


def test_broken_plugins_of_other_names_are_a_likely_cause(make: Any) -> None:
    first, second = ImportError("first"), ImportError("second")
    catalog = make.catalog(make.candidate("a", first), make.candidate("b", second))
    text = message(catalog, "foo.bar")
    assert "likely cause: plugin 'a' (acme 1.0) is broken: importing a_package.plugin: ImportError: first" in text
    assert "plugin 'b' (acme 1.0) is broken" in text
    with pytest.raises(PluginError) as raised:
        catalog.get("stages", "foo.bar")
    assert raised.value.__cause__ is first


def test_many_broken_plugins_are_counted(make: Any) -> None:
    catalog = make.catalog(*(make.candidate(f"p{number}", ImportError("x")) for number in range(8)))
    text = message(catalog, "foo.bar")
    assert "plugin 'p4'" in text
    assert "plugin 'p5'" not in text
    assert "; and 3 more" in text


def test_blocked_plugins_are_mentioned(make: Any) -> None:
    catalog = make.catalog(make.candidate("acme", make.plugin("x")), block=["acme"])
    assert "not imported, by a block or allow list: acme" in message(catalog, "foo.bar")


def test_a_catalog_of_providers_serves_tests(make: Any) -> None:
    provider = make.provider("memory")
    catalog = Catalog.of(kv_backends=[provider])
    assert catalog.get("kv_backends", "memory") is provider
    assert catalog.providers("kv_backends") == [provider]
    assert catalog.plugins() == ()
    assert catalog.names("stages") == ()


def test_every_axis_has_a_word_for_a_person() -> None:
    assert len({noun(axis) for axis in AXES}) == len(AXES) == 5


def test_a_command_is_found_by_name_or_its_plugin_is_blamed(make: Any) -> None:
    error = ImportError("no module named 'driver'")
    catalog = make.catalog(make.candidate("logs", error), make.candidate("core", make.plugin(commands=["run"]), "b"))
    assert catalog.command("run").name == "run"
    with pytest.raises(
        PluginError, match=r"command 'logs' cannot be used: plugin 'logs' \(acme 1\.0\) is broken"
    ) as raised:
        catalog.command("logs")
    assert raised.value.__cause__ is error
    with pytest.raises(PluginError, match=r"no command is called 'rnu'; did you mean 'run'\?"):
        catalog.command("rnu")


def test_a_declared_command_of_a_broken_plugin_names_that_plugin(make: Any) -> None:
    def fail() -> None:
        raise ValueError("odd")

    catalog = make.catalog(make.candidate("acme", make.plugin(commands=["walk"], stagewire_stages=fail)))
    with pytest.raises(PluginError, match=r"command 'walk' cannot be used: plugin 'acme'"):
        catalog.command("walk")
