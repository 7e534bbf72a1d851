"""ChunkAdapter: streams one request's chunks from stage to stage, over any chunk transport."""

from stagewire_chunks.adapter import ChunkAdapter
from stagewire_chunks.options import ChunkOptions
from stagewire_chunks.port import MinimalTransport
from stagewire_chunks.snapshot import HandOver
from stagewire_chunks.stopping import StopReport

__all__ = ["ChunkAdapter", "ChunkOptions", "HandOver", "MinimalTransport", "StopReport"]
