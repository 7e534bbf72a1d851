"""What the captions example offers, and what it does not load."""

from __future__ import annotations

import subprocess
import sys

from stagewire_examples.captions import plugin

ROLES = {provider.name: provider for provider in plugin.stagewire_stages()}


def test_csp12_each_role_says_which_it_is() -> None:
    assert {name: set(provider.capabilities) for name, provider in ROLES.items()} == {
        "captions.thumbnails": {"csp.producer"},
        "captions.mailbox": {"csp.requester"},
        "captions.http": {"csp.requester"},
        "captions.sheet": {"csp.consumer"},
    }


def test_every_option_has_a_default_and_a_description() -> None:
    for provider in (*ROLES.values(), *plugin.stagewire_pipelines()):
        fields = provider.options.model_fields.items()
        assert [name for name, field in fields if field.is_required() or not field.description] == []


def test_everything_needs_the_extra() -> None:
    needs = [provider.extra and provider.extra.name for provider in (*ROLES.values(), *plugin.stagewire_pipelines())]
    assert set(needs) == {"images"}


def test_importing_the_plugin_loads_neither_pillow_nor_aiohttp() -> None:
    check = "import sys, stagewire_examples.captions.plugin; print(sorted({'PIL', 'aiohttp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
