"""The models that every configuration shares; a pipeline kind adds the model of its own sections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator

from stagewire.spec.provider import Axis, Options, Provider


class UnresolvedBlockError(AssertionError):
    """A block was asked for its provider or options before the loader bound them, or although they are at fault."""


class BlockNotes(list[tuple[type["UseBlock"], object]]):
    """The data of every block that validation meets, valid or not, when it is pydantic's ``context``.

    So the loader can look into the blocks of a configuration whose other parts are at fault.
    """


class UseBlock(BaseModel):
    """A block that chooses a provider: ``use: NAME`` beside that provider's own options.

    Subclasses name the axis and may declare keys of their own (a stage block has ``replicas``); all other keys belong
    to the provider. After loading, ``provider`` and ``options`` hold what ``use`` named, validated.
    """

    model_config = ConfigDict(extra="allow")

    axis: ClassVar[Axis]

    use: str
    _provider: Provider[Any] | None = PrivateAttr(default=None)
    _options: BaseModel | None = PrivateAttr(default=None)

    @property
    def provider(self) -> Provider[Any]:
        """The provider that ``use`` named. Only after loading; raises `UnresolvedBlockError`."""
        if self._provider is None:
            raise UnresolvedBlockError(f"the block 'use: {self.use}' has no provider; load_config binds it")
        return self._provider

    @property
    def options(self) -> BaseModel:
        """The provider's options, validated. Only after loading; raises `UnresolvedBlockError`."""
        if self._options is None:
            raise UnresolvedBlockError(f"the block 'use: {self.use}' has no valid options; load_config binds them")
        return self._options

    def provider_values(self) -> dict[str, Any]:
        """The keys that belong to the provider, as they stand in the file."""
        return dict(self.__pydantic_extra__ or {})

    def resolve(self, provider: Provider[Any], options: BaseModel | None) -> None:
        """Bind the provider; called once, by the loader. Without options when they are at fault."""
        self._provider = provider
        self._options = options

    @model_validator(mode="before")
    @classmethod
    def _note(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(info.context, BlockNotes):
            info.context.append((cls, value))
        return value

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Leave the provider's values out: they stand as in the file, and may be secrets."""
        for name in type(self).model_fields:
            yield name, getattr(self, name)
        yield "options", self._options


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


class MetricsOptions(Options):
    """``metrics:`` — numbers for Prometheus, at ``http://HOST:PORT/metrics`` while the pipeline runs."""

    port: int = Field(ge=0, le=65_535, description="Where to listen; 0 takes a free port, which the log names.")
    host: str = Field(
        "127.0.0.1", min_length=1, description="Where to listen. Whoever reaches it reads the numbers: nobody is asked."
    )


class Sections(Options):
    """The keys that every file has beside those of its pipeline kind."""

    version: Literal[1] = Field(description="The version of this format.")
    pipeline: str = Field(description="The pipeline's kind; it decides which other keys there are.")
    name: str | None = Field(
        default=None, min_length=1, max_length=100, description="What logs call it; the file's name by default."
    )
    transport: TransportBlock = Field(default_factory=lambda: TransportBlock(use="local"))
    kv: KVBlock = Field(default_factory=lambda: KVBlock(use="memory"))
    lease: LeaseBlock = Field(default_factory=lambda: LeaseBlock(use="memory"))
    logging: LoggingOptions = Field(default_factory=LoggingOptions)
    metrics: MetricsOptions | None = Field(default=None, description="Serve numbers to Prometheus.")
