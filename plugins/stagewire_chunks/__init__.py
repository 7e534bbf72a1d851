"""stagewire_chunks."""
