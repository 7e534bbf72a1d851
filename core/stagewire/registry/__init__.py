"""The plugins: found, imported one by one, validated, and offered by name. Discovery never raises; using may."""

from stagewire.registry.admission import Entry
from stagewire.registry.axes import AXES, noun
from stagewire.registry.candidates import Candidate, given, installed_candidates
from stagewire.registry.catalog import Catalog
from stagewire.registry.records import PluginRecord, PluginState
from stagewire.selection import ALLOW_VARIABLE, BLOCK_VARIABLE, Selection

__all__ = [
    "ALLOW_VARIABLE",
    "AXES",
    "BLOCK_VARIABLE",
    "Candidate",
    "Catalog",
    "Entry",
    "PluginRecord",
    "PluginState",
    "Selection",
    "given",
    "installed_candidates",
    "noun",
]
