"""The ``stagewire`` program. Its commands come from the plugins, its own included.

What else is exported here is for the commands of plugins.
"""

from typing import TYPE_CHECKING

from stagewire.cli.exits import Exit
from stagewire.cli.main import invoke, main
from stagewire.cli.options import Command, config_argument, json_option
from stagewire.cli.program import Program, pass_program
from stagewire.cli.progress import Observe, display

if TYPE_CHECKING:
    from stagewire.cli.files import open_input


def __getattr__(name: str) -> object:
    """Load what takes asyncio when it is first asked for."""
    if name == "open_input":
        from stagewire.cli.files import open_input  # noqa: PLC0415 — see above

        return open_input
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Command",
    "Exit",
    "Observe",
    "Program",
    "config_argument",
    "display",
    "invoke",
    "json_option",
    "main",
    "open_input",
    "pass_program",
]
