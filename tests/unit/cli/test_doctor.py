"""``stagewire doctor CONFIG --connect``: what answers, and what cannot be used."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from stagewire import Options, Permanent, Provider, Traffic, hookimpl


class Backend:
    """A transport that can be tried out; what comes of it is the class's to say."""

    outcome: Any = "it answers"
    opened = 0

    def __init__(self, *_args: object) -> None: ...

    async def probe(self, traffic: Traffic) -> str:
        assert traffic == Traffic(), "this pipeline says nothing of its traffic"
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return str(self.outcome)

    async def open(self) -> None:
        type(self).opened += 1

    async def close(self) -> None: ...


@pytest.fixture
def backend() -> type[Backend]:
    return type("BackendOfTheTest", (Backend,), {})


@pytest.fixture
def doctor(stage: Any, backend: type[Backend]) -> Any:
    """Run the doctor, or another command, on a pipeline over the test's transport."""
    plugin: Any = ModuleType("acme_plugin")
    provider: Any = Provider(name="acme", summary="Acme.", options=Options, factory=backend)
    plugin.stagewire_transports = hookimpl(lambda: [provider])
    config = stage.config("transport: {use: acme}\n")
    return lambda *command: stage(*command, config, plugins={"play": stage._plugin, "acme": plugin})


def test_the_doctor_says_what_answers(doctor: Any, backend: type[Backend]) -> None:
    said = doctor("doctor", "--connect")
    assert said.status == 0, said
    assert "transport 'acme': it answers\n" in said.out
    assert "KV backend 'memory': nothing to connect to\n" in said.out
    assert backend.opened == 0, "it is tried out, not opened"


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (
            Permanent("acme at host:1: wrong password: correct the url"),
            "acme at host:1: wrong password: correct the url",
        ),
        (
            RuntimeError("a fault\nof its own"),
            "transport 'acme' could not be tried out: RuntimeError: a fault of its own",
        ),
    ],
)
def test_what_cannot_be_used_is_named_in_one_line(
    doctor: Any, backend: type[Backend], outcome: Exception, said: str
) -> None:
    backend.outcome = outcome
    answer = doctor("doctor", "--connect")
    assert answer.status == 2
    assert answer.err == f"transport 'acme': error: {said}\n"


def test_without_connect_the_doctor_only_builds(doctor: Any, backend: type[Backend]) -> None:
    backend.outcome = Permanent("not reached")
    said = doctor("doctor")
    assert said.status == 0, said
    assert ": ok, pipeline 'play' of kind 'play'\n" in said.out


def test_connect_needs_a_config(stage: Any) -> None:
    said = stage("doctor", "--connect")
    assert said.status == 2
    assert "--connect needs a CONFIG" in said.err


def test_a_faulty_config_is_named_with_its_place(stage: Any) -> None:
    config = stage.config("mood: x\n")
    said = stage("doctor", config)
    assert said.status == 2
    assert f"{config}:4:1" in said.err
