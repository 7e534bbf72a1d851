"""Import time is a feature: what is not needed is not loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import stagewire

pytestmark = pytest.mark.integration

HEAVY = {
    "PIL", "aio_pika", "aiohttp", "aiormq", "espeakng_loader", "hiredis", "matplotlib", "numpy", "orjson", "pandas",
    "pika", "prometheus_client", "redis", "rich", "ruamel", "structlog", "textual", "uvloop",
}  # fmt: skip


def loaded(code: str) -> set[str]:
    probe = f"import sys\n{code}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import stagewire",
        "from stagewire.app import App; App().catalog",
        "from stagewire.cli import invoke; invoke(['--help'])",
        "from stagewire.cli import invoke; invoke(['run', '--help'])",
        "from stagewire.cli import invoke; invoke(['version'])",
        "from stagewire.cli import invoke; invoke(['plugins'])",
        "from stagewire.cli import invoke; invoke(['schema'])",
    ],
    ids=["import", "discovery", "help", "run help", "version", "plugins", "schema"],
)
def test_neither_a_driver_nor_what_draws_is_loaded(code: str) -> None:
    assert loaded(code) & HEAVY == set()


def test_importing_stagewire_loads_no_plugin_and_no_command_line() -> None:
    names = loaded("import stagewire")
    assert not {name for name in names if name.startswith("stagewire_")}
    assert "click" not in names


def test_a_declared_command_loads_its_own_plugin_only_and_no_models(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text('{"event":"a","level":"info","timestamp":"2026-12-01T00:00:00.000000Z"}\n')
    names = loaded(f"from stagewire.cli import invoke; invoke(['logs', 'tail', '--no-follow', {str(log)!r}])")
    assert {name for name in names if name.startswith("stagewire_")} == {"stagewire_logs"}
    assert not names & (HEAVY | {"asyncio", "pydantic"})


def test_every_exported_name_is_there_and_none_else_is_made_up() -> None:
    assert {name for name in stagewire.__all__ if not hasattr(stagewire, name)} == set()
    assert set(stagewire.__all__) <= set(dir(stagewire))
    assert not hasattr(stagewire, "no_such_name")
