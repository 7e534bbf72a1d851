"""The models that every configuration shares; a pipeline kind adds the model of its own sections."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, PrivateAttr

from stagewire.spec.provider import Axis, Options, Provider


class UseBlock(BaseModel):
    """A block that chooses a provider: ``use: NAME`` beside that provider's own options.

    Subclasses name the axis and may declare keys of their own (a stage block has ``replicas``); all other keys belong to the
    provider. After loading, ``provider`` and ``options`` hold what ``use`` named, validated.
    """

    model_config = ConfigDict(extra="allow")

    axis: ClassVar[Axis]

    use: str
    _provider: Provider[Any] | None = PrivateAttr(default=None)
    _options: BaseModel | None = PrivateAttr(default=None)

    @property
    def provider(self) -> Provider[Any]:
        """The provider that ``use`` named. Only after loading."""
        assert self._provider is not None, "the block was not resolved by load_config"
        return self._provider

    @property
    def options(self) -> BaseModel:
        """The provider's options, validated. Only after loading."""
        assert self._options is not None, "the block was not resolved by load_config"
        return self._options

    def provider_values(self) -> dict[str, Any]:
        """The keys that belong to the provider, as they stand in the file."""
        return dict(self.__pydantic_extra__ or {})

    def resolve(self, provider: Provider[Any], options: BaseModel) -> None:
        """Bind the provider; called once, by the loader."""
        self._provider = provider
        self._options = options


class StageBlock(UseBlock):
    """Base of a block that chooses a stage provider."""

    axis: ClassVar[Axis] = "stages"


class TransportBlock(UseBlock):
    """``transport:``."""

    axis: ClassVar[Axis] = "transports"


class KVBlock(UseBlock):
    """``kv:``."""

    axis: ClassVar[Axis] = "kv_backends"


class LeaseBlock(UseBlock):
    """``lease:``."""

    axis: ClassVar[Axis] = "lease_backends"


class LoggingOptions(Options):
    """``logging:``. ``format: auto`` is colour on a terminal and JSON lines otherwise."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "console"] = "auto"
    file: str | None = None
