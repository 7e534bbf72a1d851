"""Configuration: YAML files read, laid over each other, validated and bound to the installed providers."""

from stagewire.config.document import Document, load_document
from stagewire.config.loader import Config, load_config
from stagewire.config.models import (
    KVBlock,
    LeaseBlock,
    LoggingOptions,
    StageBlock,
    TransportBlock,
    UnresolvedBlockError,
    UseBlock,
)
from stagewire.config.render import EffectiveValue, effective
from stagewire.config.schema import json_schema
from stagewire.suggest import did_you_mean

__all__ = [
    "Config",
    "Document",
    "EffectiveValue",
    "KVBlock",
    "LeaseBlock",
    "LoggingOptions",
    "StageBlock",
    "TransportBlock",
    "UnresolvedBlockError",
    "UseBlock",
    "did_you_mean",
    "effective",
    "json_schema",
    "load_config",
    "load_document",
]
