"""In-memory KV and lease backends."""
