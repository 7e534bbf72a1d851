"""What the plugin offers, and what it does not load."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stagewire import Options, Provider, Stage
from stagewire_examples import plugin

if TYPE_CHECKING:
    from tests.unit.examples.conftest import Drive

PROVIDERS = {provider.name: provider for provider in plugin.stagewire_stages()}


def test_the_stages_are_those_of_the_shipped_configurations() -> None:
    assert sorted(PROVIDERS) == [
        "morse.encode", "morse.tone", "speech.phonemes", "speech.synthesize",
        "text.sentences", "text.table", "text.words",
    ]  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS.keys())
def test_every_provider_is_described_and_builds_a_stage(provider: Provider[Stage]) -> None:
    assert provider.summary.endswith(".")
    assert issubclass(provider.options, Options)
    stage = provider.factory(provider.options(), None)  # type: ignore[arg-type] # no factory here looks at its context
    assert isinstance(stage, Stage)


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS.keys())
def test_every_option_has_a_default_and_a_description(provider: Provider[Stage]) -> None:
    fields = provider.options.model_fields.items()
    assert [name for name, field in fields if field.is_required() or not field.description] == []


def test_only_speech_needs_an_extra() -> None:
    needs = {name: provider.extra.name for name, provider in PROVIDERS.items() if provider.extra}
    assert needs == {"speech.phonemes": "speech", "speech.synthesize": "speech"}


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS.keys())
def test_no_default_is_a_set_whose_order_would_differ_from_run_to_run(provider: Provider[Stage]) -> None:
    defaults = [field.default for field in provider.options.model_fields.values()]
    assert not any(isinstance(default, set | frozenset) for default in defaults)


def test_importing_the_plugin_loads_no_driver() -> None:
    check = "import sys, stagewire_examples.plugin; print(sorted({'espeakng_loader', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["morse.encode", "text.words", "speech.phonemes", "speech.synthesize"])
def test_bytes_where_a_sentence_belongs_are_refused_with_the_remedy(drive: Drive, name: str) -> None:
    provider = PROVIDERS[name]
    if (
        provider.extra
        and importlib.util.find_spec(provider.extra.modules[0]) is None
        and os.environ.get("CI") != "true"
    ):
        pytest.skip("needs eSpeak NG: pip install 'stagewire[speech]'")
    with pytest.raises(TypeError, match=r"str, not bytes: put text\.sentences in front"):
        drive(provider.factory(provider.options(), None), [b"One. Two."])  # type: ignore[arg-type] # as above
