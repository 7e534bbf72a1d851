"""Reads, validates and resolves a configuration: everything that a run needs, up to opening a connection."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stagewire.config.blocks import Resolver
from stagewire.config.document import Document, arrange, read_document
from stagewire.config.findings import Findings
from stagewire.config.models import (
    KVBlock,
    LeaseBlock,
    LoggingOptions,
    MetricsOptions,
    Sections,
    TransportBlock,
    UseBlock,
)
from stagewire.config.validate import Checked, validate
from stagewire.config.wording import listing
from stagewire.errors import ConfigError, PluginError
from stagewire.registry.extras import METRICS, missing
from stagewire.spec.pipeline import Pipeline
from stagewire.spec.provider import Provider

if TYPE_CHECKING:
    from stagewire.registry import Catalog

SECTIONS = frozenset(Sections.model_fields)
"""The keys at the top level that do not belong to the pipeline kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A valid configuration, every block bound to its provider.

    Attributes:
        name: What logs call the pipeline; by default the first file's name without its ending.
        kind: The provider of the pipeline kind.
        options: The kind's own sections, an instance of ``kind.options``.
        transport: The transport block.
        kv: The KV block.
        lease: The lease block.
        logging: How to log.
        metrics: Where to serve numbers; ``None``: nowhere.
        base: The directory that relative paths refer to: that of the last file.
        document: The files as data, with the origin of every value.
    """

    name: str
    kind: Provider[Pipeline]
    options: BaseModel
    transport: TransportBlock
    kv: KVBlock
    lease: LeaseBlock
    logging: LoggingOptions
    metrics: MetricsOptions | None
    base: Path
    document: Document


def load_config(paths: Sequence[Path], catalog: Catalog, *, environ: Mapping[str, str] = os.environ) -> Config:
    """Load the files, each laid over those before it. Opens nothing but the files.

    A key that is written twice, or a variable that is missing, does not hide the faults elsewhere: what can be
    validated is. Messages show no `pydantic.SecretStr`, no password of a URL, and what came from the environment only
    where it chooses a provider.

    Raises:
        ConfigError: With every fault, in the order of the files. Its cause is the first exception of a plugin that led
            to one, if any.
    """
    reading = read_document(paths, environ)
    if reading.document is None:
        raise ConfigError(arrange(reading.problems, paths))
    findings = Findings(reading.document, reading)
    parts = _Parts(reading.document, catalog, findings)
    parts.resolve(Resolver(catalog, findings))
    findings.raise_if_any(paths)
    return parts.config()


class _Parts:
    """The sections that every file has, and those of its kind, validated apart from each other."""

    def __init__(self, document: Document, catalog: Catalog, findings: Findings) -> None:
        self._document = document
        self._common = {key: value for key, value in document.data.items() if key in SECTIONS}
        self._own = {key: value for key, value in document.data.items() if key not in SECTIONS}
        self._kind = _find_kind(self._common, catalog, findings)
        self._sections = validate(Sections, self._common, (), findings)
        if "metrics" in self._common and (lack := missing("'metrics'", METRICS)):
            findings.value(("metrics",), lack)
        self._options: Checked[BaseModel] | None = None
        if self._kind is not None:
            self._options = validate(self._kind.options, self._own, (), findings, also=sorted(SECTIONS))

    def resolve(self, resolver: Resolver) -> None:
        resolver.resolve(self._sections, self._common)
        if self._kind is not None and self._options is not None:
            resolver.resolve(self._options, self._own)
            resolver.check(self._kind, self._options.model)
            resolver.check_backends(self._kind, self._options.model, self._backends())

    def _backends(self) -> Sequence[UseBlock]:
        model = self._sections.model
        return () if model is None else (model.transport, model.kv, model.lease)

    def config(self) -> Config:
        """Only when there was no fault."""
        sections = self._sections.model
        assert sections is not None
        assert self._kind is not None
        assert self._options is not None
        assert self._options.model is not None
        files = self._document.files
        return Config(
            name=sections.name or files[0].stem,
            kind=self._kind,
            options=self._options.model,
            transport=sections.transport,
            kv=sections.kv,
            lease=sections.lease,
            logging=sections.logging,
            metrics=sections.metrics,
            base=files[-1].absolute().parent,
            document=self._document,
        )


def _find_kind(common: dict[str, Any], catalog: Catalog, findings: Findings) -> Provider[Pipeline] | None:
    if "pipeline" not in common:
        kinds = listing(catalog.names("pipelines")) or "none is installed"
        findings.value(("pipeline",), f"is required: the pipeline's kind ({kinds})")
        common["pipeline"] = ""  # so that it is not reported twice
        return None
    name = common["pipeline"]
    if not isinstance(name, str):
        return None  # reported with the other sections
    try:
        provider: Provider[Pipeline] = catalog.get("pipelines", name)
    except PluginError as error:
        findings.cause = findings.cause or error
        findings.value(("pipeline",), str(error))
        return None
    return provider
