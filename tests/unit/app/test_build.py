"""Loading and building: what factories are offered, and that nothing is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import stagewire
from stagewire import BuildContext, ConfigError, Options, PluginError, Provider
from stagewire.app import App
from stagewire.claims import ClaimedTransport
from stagewire.registry import Catalog


def test_building_opens_nothing_and_builds_only_what_is_asked_for(theatre: Any) -> None:
    theatre.uses = ("kv",)
    app = theatre.app()
    pipeline = app.build(theatre.config(app))
    assert pipeline.graph() == "flowchart LR"
    assert theatre.trail == ["build kv"]


def test_a_backend_is_built_once_however_often_it_is_asked_for(theatre: Any) -> None:
    theatre.uses = ("kv", "kv", "transport", "kv")
    app = theatre.app()
    app.build(theatre.config(app))
    assert theatre.trail == ["build kv", "build transport"]
    (context,) = theatre.contexts
    assert context.kv() is context.kv()


def test_the_context_tells_name_folder_clock_and_catalog(theatre: Any, tmp_path: Path) -> None:
    theatre.clock = lambda: 42.0
    app = theatre.app()
    app.build(theatre.config(app, "name: hamlet\n"))
    (context,) = theatre.contexts
    assert context.pipeline == "hamlet"
    assert context.base == tmp_path
    assert context.clock() == 42.0
    assert context.catalog is app.catalog


def test_building_makes_no_log_file_and_logging_makes_it_beside_the_configuration(theatre: Any, tmp_path: Path) -> None:
    app = theatre.app()
    app.build(theatre.config(app, "logging: {file: play.log}\n"))
    assert not (tmp_path / "play.log").exists()
    (context,) = theatre.contexts
    context.log.info("curtain.up")
    assert '"pipeline":"play"' in (tmp_path / "play.log").read_text()


def test_shared_objects_are_one_for_an_app_and_different_between_apps(theatre: Any) -> None:
    one, other = theatre.app(), theatre.app()
    for app in (one, one, other):
        app.build(theatre.config(app))
    first, second, third = (context.shared(("play", "stage"), object) for context in theatre.contexts)
    assert first is second
    assert first is not third


def test_what_a_factory_raises_is_told_with_its_name_and_kept_as_the_cause(theatre: Any) -> None:
    def fail(_options: object, _context: object) -> None:
        raise ZeroDivisionError("no stage")

    theatre.build = fail
    app = theatre.app()
    config = theatre.config(app)
    with pytest.raises(
        PluginError, match=r"pipeline kind 'play' cannot be built: ZeroDivisionError: no stage"
    ) as raised:
        app.build(config)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_stagewires_own_errors_come_through_as_they_are(theatre: Any) -> None:
    error = ConfigError([])

    def fail(_options: object, _context: object) -> None:
        raise error

    theatre.build = fail
    app = theatre.app()
    config = theatre.config(app)
    with pytest.raises(ConfigError) as raised:
        app.build(config)
    assert raised.value is error


def test_an_app_discovers_what_is_installed_when_it_is_first_asked() -> None:
    app = App(environ={"STAGEWIRE_PLUGINS_BLOCK": "memory"})
    states = {plugin.name: plugin.state for plugin in app.catalog.plugins()}
    assert states["memory"] == "blocked"
    assert states["local"] == "loaded"
    assert app.catalog is app.catalog


def test_an_app_takes_the_catalog_that_it_is_given() -> None:
    catalog = Catalog.of()
    assert App(catalog).catalog is catalog


def test_the_log_hides_the_secrets_of_options_however_deep_they_lie(theatre: Any, tmp_path: Path) -> None:
    class Door(Options):
        keys: dict[str, list[SecretStr]]

    class PlayOptions(Options):
        password: SecretStr
        doors: tuple[Door, ...]

    app = theatre.app(options=PlayOptions)
    app.build(
        theatre.config(
            app, "logging: {file: play.log}\npassword: open-sesame\ndoors: [{keys: {front: [rusty-nail]}}]\n"
        )
    )
    theatre.contexts[0].log.info("door.opened", words="we said open-sesame and took the rusty-nail")
    text = (tmp_path / "play.log").read_text()
    assert "we said" in text
    assert "sesame" not in text
    assert "rusty" not in text


def test_an_app_and_a_catalog_can_be_imported_from_the_top() -> None:
    assert stagewire.App is App
    assert stagewire.Catalog is Catalog
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(stagewire, "Nothing")  # noqa: B009 — a type checker would not let it through otherwise


@pytest.mark.parametrize(
    ("wire", "store", "claimed"),
    [({"claims"}, set(), True), ({"claims"}, {"in-process"}, False), (set(), set(), False)],
    ids=["other processes", "a store of this process", "a transport of this process"],
)
def test_tr10_large_payloads_go_by_claim_where_others_reach_the_store(
    tmp_path: Path, wire: set[str], store: set[str], *, claimed: bool
) -> None:
    class Backend:
        reference_threshold = 1

        def batches(self) -> None:
            return None

    built: list[object] = []

    def build(_options: Options, context: BuildContext) -> object:
        built.extend([context.transport(), context.transport()])
        return object()

    def provider(name: str, capabilities: set[str]) -> Provider[Any]:
        return Provider(name=name, summary="", factory=lambda *_: Backend(), capabilities=frozenset(capabilities))

    catalog = Catalog.of(
        pipelines=[Provider(name="play", summary="", factory=build)],
        transports=[provider("local", wire)],
        kv_backends=[provider("memory", store)],
        lease_backends=[provider("memory", store)],
    )
    file = tmp_path / "play.yaml"
    file.write_text("version: 1\npipeline: play\n")
    app = App(catalog, environ={})
    app.build(app.load([file]))
    assert isinstance(built[0], ClaimedTransport) is claimed
    assert built[0] is built[1]
