"""The compose files: what is promised of them, and that Compose takes them."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stagewire.testing.services import PrivateRabbitMQ

ROOT = Path(__file__).resolve().parent.parent.parent
COMPOSE = ROOT / "compose"
FILES = ("compose.yaml", "workers.yaml")
STAGES = {"sentences", "morse", "tone"}


def services(file: str) -> dict[str, Any]:
    return dict(YAML(typ="safe").load((COMPOSE / file).read_text())["services"])


@pytest.fixture
def env_file(tmp_path: Path) -> Path:
    file = tmp_path / "compose.env"
    subprocess.run((ROOT / "scripts" / "compose-env", file), check=True, capture_output=True)
    return file


def client() -> list[str]:
    """Compose as a plugin of the Docker client, or as a program of its own."""
    docker = shutil.which("docker")
    if docker and subprocess.run((docker, "compose", "version"), capture_output=True, check=False).returncode == 0:
        return [docker, "compose"]
    alone = shutil.which("docker-compose")
    if alone:
        return [alone]
    pytest.skip("neither `docker compose` nor `docker-compose` is installed")


@pytest.mark.parametrize("name", ["rabbitmq", "redis"])
def test_services_are_healthy_bounded_and_kept(name: str) -> None:
    service = services("compose.yaml")[name]
    assert service["healthcheck"]["test"]
    assert service["mem_limit"]
    assert any(volume.startswith(f"{name}:/") for volume in service["volumes"])


def test_no_port_leaves_the_loopback_interface_unasked() -> None:
    for name, service in services("compose.yaml").items():
        for port in service["ports"]:
            assert port.startswith(("127.0.0.1:", "${STAGEWIRE_BIND:-127.0.0.1}:")), f"{name} publishes {port}"


def test_there_is_no_password_that_anybody_knows() -> None:
    text = "".join((COMPOSE / file).read_text() for file in FILES)
    assert "guest:" not in text
    broker = services("compose.yaml")["rabbitmq"]["environment"]
    assert broker["RABBITMQ_DEFAULT_USER"] != "guest"
    assert broker["RABBITMQ_DEFAULT_PASS"].startswith("${STAGEWIRE_RABBITMQ_PASSWORD:?")
    assert any(
        "--requirepass ${STAGEWIRE_REDIS_PASSWORD:?" in part for part in services("compose.yaml")["redis"]["command"]
    )


def test_the_plugins_for_people_and_for_prometheus_are_on() -> None:
    assert (COMPOSE / "enabled_plugins").read_text() == "[rabbitmq_management,rabbitmq_prometheus].\n"


def test_every_stage_of_the_quickstart_has_a_worker() -> None:
    workers = services("workers.yaml")
    staged = {name for name, service in workers.items() if service["command"][0] == "worker"}
    assert staged == STAGES
    for name in staged:
        assert workers[name]["command"][-1] == name


def test_passwords_are_fresh_private_and_kept(tmp_path: Path, env_file: Path) -> None:
    first = env_file.read_text()
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    subprocess.run((ROOT / "scripts" / "compose-env", env_file), check=True)
    assert env_file.read_text() == first
    other = tmp_path / "other.env"
    subprocess.run((ROOT / "scripts" / "compose-env", other), check=True, capture_output=True)
    assert other.read_text() != first


@pytest.mark.integration
@pytest.mark.parametrize("files", [FILES[:1], FILES], ids=["services", "with workers"])
def test_compose_takes_the_files(files: tuple[str, ...], env_file: Path) -> None:
    chosen = [part for file in files for part in ("--file", str(COMPOSE / file))]
    command = [*client(), "--env-file", str(env_file), "--project-name", "stagewire", *chosen, "config", "--quiet"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("STAGEWIRE_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr


@pytest.mark.integration
def test_without_passwords_compose_says_where_they_come_from(tmp_path: Path) -> None:
    empty = tmp_path / "empty.env"
    empty.touch()
    command = [*client(), "--env-file", str(empty), "--file", str(COMPOSE / "compose.yaml"), "config", "--quiet"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("STAGEWIRE_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode != 0
    assert "run make up" in done.stderr


def shipped_settings() -> tuple[str, ...]:
    lines = (COMPOSE / "rabbitmq.conf").read_text().splitlines()
    return tuple(line for line in lines if not line.startswith("#"))


@pytest.mark.integration
@pytest.mark.parametrize("broker_settings", [shipped_settings()], ids=["shipped"])
def test_a_broker_takes_its_settings(mortal_rabbitmq: PrivateRabbitMQ, broker_settings: tuple[str, ...]) -> None:
    assert len(broker_settings) == 3
    assert mortal_rabbitmq.api("GET", "overview")["node"] == mortal_rabbitmq.node
