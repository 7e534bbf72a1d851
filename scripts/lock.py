"""Renew requirements/dev.lock: what tests and lint need, each at one version, with hashes, for all platforms."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "dev.lock"
COMPILE = (
    *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
    *("--upgrade", "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"),
    *("--all-extras", "--group", "dev", "pyproject.toml"),
)


def main() -> None:
    result = subprocess.run(COMPILE, cwd=ROOT, check=True, capture_output=True, text=True)
    if "://" in result.stdout:
        sys.exit("lock: the result names a host; nothing was written")
    LOCK.write_text("# Made by `make lock`; do not edit.\n" + result.stdout)
    print(f"lock: wrote {LOCK.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
