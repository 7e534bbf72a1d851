"""SIGKILL at random moments: nothing that finalize acknowledged is lost, no half file, nothing left, the next works."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stagewire.testing.services import PrivateRabbitMQ, PrivateRedis

if TYPE_CHECKING:
    import subprocess

    from tests.integration.writes.conftest import Fleet

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

RUNS = int(os.environ.get("STAGEWIRE_CHAOS_RUNS", "2"))
DICE = random.Random(int(os.environ.get("STAGEWIRE_CHAOS_SEED", "20")))


def torment(fleet: Fleet, files: tuple[Path, Path], strike: Callable[[subprocess.Popen[bytes]], None]) -> None:
    """Put a file over an old one, strike at a random moment, and look at what is there; then the next one succeeds."""
    old, new = files
    fleet.must_put(old)
    for _ in range(RUNS):
        before = fleet.content()
        client = fleet.put_slowly(new)
        time.sleep(DICE.uniform(0.0, 0.9))
        strike(client)
        status, errors = fleet.end(client)
        if status == 0:
            assert fleet.content() == new.read_bytes()
        else:
            assert fleet.content() in (before, new.read_bytes()), "half a file"
            assert status == -signal.SIGKILL or "error:" in errors
        fleet.must_put(old)
        assert fleet.content() == old.read_bytes()
    fleet.settled()


def test_ws19_the_agent_is_killed_mid_batch(fleet: Fleet, files: tuple[Path, Path]) -> None:
    def strike(_client: subprocess.Popen[bytes]) -> None:
        fleet.agent.kill()
        fleet.agent.wait()
        fleet.start_agent()

    torment(fleet, files, strike)


def test_ws19_tk5_the_controller_is_killed(fleet: Fleet, files: tuple[Path, Path]) -> None:
    torment(fleet, files, lambda client: client.kill())


def test_ws9_ws19_redis_is_killed(fleet: Fleet, files: tuple[Path, Path], mortal_redis: PrivateRedis) -> None:
    def strike(client: subprocess.Popen[bytes]) -> None:
        mortal_redis.kill()
        client.wait(60)
        mortal_redis.start()

    torment(fleet, files, strike)


def test_ws19_rabbitmq_is_killed(
    fleet_of_mortals: Fleet, files: tuple[Path, Path], mortal_rabbitmq: PrivateRabbitMQ
) -> None:
    def strike(_client: subprocess.Popen[bytes]) -> None:
        mortal_rabbitmq.kill()
        mortal_rabbitmq.start()

    torment(fleet_of_mortals, files, strike)
