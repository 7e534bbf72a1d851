"""A catalog of small providers, and loaders that show faults as a person reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AnyUrl, Field, PositiveInt, SecretStr, field_validator, model_validator

from stagewire import ConfigError, Options, Problem, Provider, StageBlock, TransportBlock, did_you_mean
from stagewire.config import Config, load_config
from stagewire.registry import Catalog

Load = Callable[..., Config]
Faults = Callable[..., list[str]]


class Tone(Options):
    """A stage's options, with one field of each ordinary sort."""

    wpm: int = Field(20, gt=0, le=60)
    volume: float = Field(0.5, ge=0, lt=1)
    shape: Literal["sine", "square"] = "sine"
    loud: bool = False
    title: str | None = Field(None, min_length=2, max_length=10)
    pause: PositiveInt | Literal["auto"] = "auto"
    tags: list[str] = Field(default_factory=list, max_length=2)
    gains: dict[Annotated[str, Field(pattern="^[a-z]+$")], float] = Field(default_factory=dict)
    server: AnyUrl | None = None

    @field_validator("title")
    @classmethod
    def _title(cls, value: str | None) -> str | None:
        if value == "Untitled":
            raise ValueError(f"{value!r} is no title; say what it is")
        return value


class Read(Options):
    """A stage with a required option."""

    path: Path


class Login(Options):
    """Credentials in one section."""

    user: str = "guest"
    password: SecretStr = SecretStr("guest")

    @field_validator("password")
    @classmethod
    def _long_enough(cls, value: SecretStr) -> SecretStr:
        if len(value.get_secret_value()) < 5:
            raise ValueError(f"too short: {value.get_secret_value()}")
        return value


class Broker(Options):
    """A transport's options, with secrets."""

    url: AnyUrl = AnyUrl("amqp://localhost/")
    token: SecretStr | None = None
    login: Login = Login()
    port: int = 5672

    @model_validator(mode="after")
    def _consistent(self) -> Broker:
        if self.token is not None and self.port == 1:
            raise ValueError(f"port 1 cannot take the token {self.token.get_secret_value()}")
        return self


class Wrapped(Options):
    """A transport around another one."""

    inner: TransportBlock = Field(default_factory=lambda: TransportBlock(use="local"))


class FlowStage(StageBlock):
    """A stage block with a key of its own."""

    replicas: int = Field(1, ge=1)


class Edge(Options):
    """An edge, whose key ``from`` is no Python name. ``a -> b`` is its short form."""

    source: str = Field(alias="from")
    target: str = Field(alias="to", max_length=9)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, str) and "->" in value:
            ends = [end.strip() for end in value.split("->")]
            return dict(zip(("from", "to"), filter(None, ends), strict=False))
        return value


class Limits(Options):
    """A section of numbers."""

    requests: int = Field(10, ge=1)
    timeout: float = 1.0


class Flow(Options):
    """A pipeline kind."""

    stages: dict[str, FlowStage]
    edges: list[Edge] = Field(default_factory=list)
    limits: Limits = Limits()
    spare: list[FlowStage | Literal["none"]] = Field(default_factory=list)


def _check_flow(options: Flow, _catalog: Catalog) -> Iterator[Problem]:
    for number, edge in enumerate(options.edges):
        for end, name in (("from", edge.source), ("to", edge.target)):
            if name not in options.stages:
                yield Problem(f"no stage {name!r}{did_you_mean(name, options.stages)}", ("edges", number, end))
    for name, block in options.stages.items():
        if "idle" in block.provider.capabilities:
            yield Problem("the stage does nothing", ("stages", name))
        if isinstance(block.options, Tone) and block.options.loud and block.replicas > 1:
            yield Problem("too loud", ("stages", name, "replicas"))


def _check_tone(options: Tone, _catalog: Catalog) -> Iterator[Problem]:
    if options.wpm == 13:
        yield Problem("13 is bad luck; take 12", ("wpm",))


def _nothing(*_arguments: object) -> Any:
    raise NotImplementedError


def provider(name: str, options: type[Options] = Options, **rest: Any) -> Provider[Any]:
    """Make a provider that cannot build anything."""
    return Provider(name=name, summary=f"The {name}.", factory=_nothing, options=options, **rest)


@pytest.fixture(scope="session")
def make_provider() -> Callable[..., Provider[Any]]:
    """Return the function that makes a provider of a name and an options model."""
    return provider


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The installed providers of these tests."""
    return Catalog.of(
        pipelines=[provider("flow", Flow, check=_check_flow), provider("empty")],
        stages=[
            provider("tone", Tone, check=_check_tone),
            provider("read", Read),
            provider("noop", capabilities=frozenset({"idle"})),
        ],
        transports=[provider("local"), provider("broker", Broker), provider("wrap", Wrapped)],
        kv_backends=[provider("memory")],
        lease_backends=[provider("memory")],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for the files of one module's tests."""
    return tmp_path_factory.mktemp("config")


@pytest.fixture(scope="module")
def load(folder: Path, catalog: Catalog) -> Load:
    """Load texts as ``a.yaml``, ``b.yaml``, …, with a given environment and catalog."""

    def load(*texts: str | bytes, environ: Mapping[str, str] | None = None, using: Catalog | None = None) -> Config:
        paths = [folder / f"{letter}.yaml" for letter, _ in zip("abcdef", texts, strict=False)]
        for path, text in zip(paths, texts, strict=True):
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_config(paths, using or catalog, environ=environ or {})

    return load


@pytest.fixture(scope="module")
def faults(folder: Path, load: Load) -> Faults:
    """Load what must fail, and return its faults as ``file:line:col: path: message`` with bare file names."""

    def faults(*texts: str | bytes, **options: Any) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(*texts, **options)
        return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]

    return faults
