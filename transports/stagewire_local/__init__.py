"""stagewire_local."""
