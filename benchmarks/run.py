"""Run the benchmarks, each in a process of its own, and print one table each.

    python benchmarks/run.py [--quick] [NAME …]

Ratios compare with peers measured in the same run, and they are what counts: on a shared machine absolute times do
not.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def names() -> list[str]:
    """Return the benchmarks: the modules here that are neither helpers nor this one."""
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_") and path.stem != "run")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(names())}; default: all")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(names())
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    options = ["--quick"] if arguments.quick else []
    codes = [
        subprocess.run([sys.executable, str(HERE / f"{name}.py"), *options], check=False).returncode
        for name in arguments.names or names()
    ]
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
