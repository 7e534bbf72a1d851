from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from stagewire.testing import ManualClock, StubContext
from stagewire_local import LocalOptions, LocalTransport
from stagewire_local.plugin import stagewire_transports


def test_the_plugin_offers_the_transport_local() -> None:
    (provider,) = stagewire_transports()
    assert provider.name == "local"
    options: BaseModel = provider.options.model_validate({"total_bytes": "64MiB", "expires": 5})
    assert isinstance(options, LocalOptions)
    assert options.total_bytes == 64 * 1024 * 1024
    clock = ManualClock()
    transport = provider.factory(options, StubContext(clock=clock))
    assert isinstance(transport, LocalTransport)


@pytest.mark.parametrize(
    "values", [{"expire": 1}, {"expires": 0}, {"request_chunks": 0}, {"total_bytes": 0}, {"redeliveries": -1}]
)
def test_options_that_make_no_sense_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        LocalOptions.model_validate(values)


def test_the_options_have_a_schema_with_descriptions() -> None:
    properties = LocalOptions.model_json_schema()["properties"]
    assert all("description" in described for described in properties.values())
