"""The ``stagewire`` program. Its commands come from the plugins, its own included."""

from stagewire.cli.main import invoke, main

__all__ = ["invoke", "main"]
