"""stagewire_examples."""
