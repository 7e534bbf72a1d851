"""One module for each command. Each calls it ``command``, and imports inside its function what takes time to load."""
