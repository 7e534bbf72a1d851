"""Write sessions: large files from a caller to another process, in bounded memory and in order (WS-1 … WS-21).

A `WriteController` stands in the caller's process, a `WriteAgent` owns a directory tree in another one (or the same).
``pipeline: write-session`` puts both together from YAML.
"""

from stagewire_writes.agent import WriteAgent
from stagewire_writes.controller import WriteController
from stagewire_writes.errors import WriteError
from stagewire_writes.handle import WriteSession
from stagewire_writes.hybrid import HybridWriter
from stagewire_writes.options import ExportOptions, SessionOptions, WritesOptions
from stagewire_writes.outgoing import SessionProgress
from stagewire_writes.pieces import Pieces
from stagewire_writes.protocol import Entry, Listing, Written
from stagewire_writes.remote_file import RemoteFile

__all__ = [
    "Entry",
    "ExportOptions",
    "HybridWriter",
    "Listing",
    "Pieces",
    "RemoteFile",
    "SessionOptions",
    "SessionProgress",
    "WriteAgent",
    "WriteController",
    "WriteError",
    "WriteSession",
    "WritesOptions",
    "Written",
]
