"""The contracts. Plugins import them from `stagewire`."""
