"""The four capacities, decided once, at the start (CSP-9)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from stagewire import did_you_mean
from stagewire_csp.host import HostLimits

SPARE_WORKERS = 2
"""How many more workers a role has than permits: the permits are the bound, and a spare worker waits for the next."""

STOCK_PER_PHYSICAL = 4
"""How many T and how many Q may be in stock for each permit of physical work, unless they are given."""

PENDING_PER_PHYSICAL = 8
"""How many external requests may be in flight for each permit of physical work, unless they are given."""

MEMORY_PER_PHYSICAL = 512 * 1024 * 1024
"""Bytes that one unit of physical work is taken to need, unless given."""

PROFILE_VARIABLE = "CAPACITY_PROFILE"
"""The environment variable that names a profile, read once."""

PROFILES: Mapping[str, int] = MappingProxyType({"small": 2, "medium": 4, "large": 8, "huge": 16})
"""The profiles: how much physical work at once. Memory caps it."""


def profile_of_environment(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the profile that the environment names, if it names one."""
    return environ.get(PROFILE_VARIABLE) or None


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much of each may be at once; at least 1 of each. It does not change during a run.

    Attributes:
        physical: Local heavy work.
        t_slot: T in stock or in use.
        q_slot: Q in stock or in use.
        q_pending: External requests in flight.
        reason: Where ``physical`` comes from, for people.
    """

    physical: int
    t_slot: int
    q_slot: int
    q_pending: int
    reason: str = "explicit"

    def __post_init__(self) -> None:
        for name in ("physical", "t_slot", "q_slot", "q_pending"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: a capacity below 1 lets nothing through")

    @property
    def s_workers(self) -> int:
        """How many workers make T."""
        return self.physical + SPARE_WORKERS

    @property
    def p_workers(self) -> int:
        """How many workers request Q."""
        return self.q_pending + SPARE_WORKERS

    @property
    def c_workers(self) -> int:
        """How many workers consume pairs."""
        return self.physical + SPARE_WORKERS

    @classmethod
    def decide(
        cls,
        host: HostLimits,
        *,
        physical: int | None = None,
        profile: str | None = None,
        memory_per_physical: int = MEMORY_PER_PHYSICAL,
        t_slot: int | None = None,
        q_slot: int | None = None,
        q_pending: int | None = None,
    ) -> Self:
        """Decide the capacities: an explicit ``physical``, else a profile, else what CPU and memory allow (CSP-9).

        A profile and what is derived are capped by memory; an explicit cap is not. The other three are in proportion to
        ``physical`` unless they are given.

        Raises:
            ValueError: There is no such profile, or a capacity is below 1.
        """
        physical, reason = _physical(host, physical, profile, memory_per_physical)
        return cls(
            physical=physical,
            t_slot=physical * STOCK_PER_PHYSICAL if t_slot is None else t_slot,
            q_slot=physical * STOCK_PER_PHYSICAL if q_slot is None else q_slot,
            q_pending=physical * PENDING_PER_PHYSICAL if q_pending is None else q_pending,
            reason=reason,
        )


def _physical(host: HostLimits, explicit: int | None, profile: str | None, memory_per_physical: int) -> tuple[int, str]:
    if explicit is not None:
        return explicit, "explicit"
    if profile is not None:
        if profile not in PROFILES:
            raise ValueError(no_such_profile(profile))
        wanted, reason = PROFILES[profile], f"profile {profile}"
    else:
        wanted, reason = max(1, math.floor(host.cpus)), f"{host.cpus:g} CPUs"
    room = wanted if host.memory is None else max(1, host.memory // memory_per_physical)
    return (room, f"{reason}, capped by memory") if room < wanted else (wanted, reason)


def no_such_profile(profile: str) -> str:
    """Say that there is no such profile, and which there are."""
    return f"there is no capacity profile {profile!r}; there are {', '.join(PROFILES)}{did_you_mean(profile, PROFILES)}"
