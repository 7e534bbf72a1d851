"""``python -m stagewire`` is the ``stagewire`` program."""

from __future__ import annotations

import sys

from stagewire.cli import main

if __name__ == "__main__":
    sys.exit(main())
