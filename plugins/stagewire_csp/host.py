"""How much CPU and memory this process may use: what the machine has, within what its control group allows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

Read = Callable[[str], str | None]
"""Returns the text of a file, or ``None`` when it cannot be read."""

UNLIMITED = 1 << 60
"""cgroup v1 writes "no limit" as a number near 2**63; no machine has an exbibyte."""


@dataclass(frozen=True, slots=True)
class HostLimits:
    """What the host gives this process.

    Attributes:
        cpus: How many CPUs' worth of time, at most; a control group may give a fraction.
        memory: How many bytes, at most; ``None`` when the host does not say.
    """

    cpus: float
    memory: int | None


def read_text(path: str) -> str | None:
    """Return the text of a file of the host, or ``None`` when it is not there or not readable."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def usable_cpus() -> int:
    """Return how many CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def host_limits(read: Read = read_text, cpus: Callable[[], int] = usable_cpus) -> HostLimits:
    """Read the limits of this process: the tightest of the machine's and of every control group above it, v1 or v2."""
    groups = dict(_groups(read("/proc/self/cgroup") or ""))
    quotas = [*_cpu_quotas(read, groups)]
    memory = [*_memory_limits(read, groups), *_machine_memory(read)]
    return HostLimits(cpus=min([float(cpus()), *quotas]), memory=min(memory, default=None))


def _groups(text: str) -> Iterator[tuple[str, str]]:
    """Yield (controller, path) of each line ``id:controllers:path``; version 2 has no controller names."""
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, separator, path = rest.partition(":")
        if separator:
            yield from ((controller, path) for controller in controllers.split(","))


def _folders(mounts: Iterable[str], path: str | None) -> Iterator[str]:
    """Yield the folder of a group and those above it. In a container the root stands for the container's own group."""
    if path is None:
        return
    for mount in mounts:
        place = PurePosixPath(mount, path.lstrip("/"))
        for folder in (place, *place.parents):
            if folder.is_relative_to(mount):
                yield str(folder)


def _v2(groups: dict[str, str]) -> Iterator[str]:
    return _folders(("/sys/fs/cgroup", "/sys/fs/cgroup/unified"), groups.get(""))


def _cpu_quotas(read: Read, groups: dict[str, str]) -> Iterator[float]:
    for folder in _v2(groups):
        yield from _ratio((read(f"{folder}/cpu.max") or "").split())
    for folder in _folders(("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"), groups.get("cpu")):
        files = "cpu.cfs_quota_us", "cpu.cfs_period_us"
        yield from _ratio([(read(f"{folder}/{name}") or "").strip() for name in files])


def _memory_limits(read: Read, groups: dict[str, str]) -> Iterator[int]:
    for folder in _v2(groups):
        yield from _bytes(read(f"{folder}/memory.max"))
    for folder in _folders(("/sys/fs/cgroup/memory",), groups.get("memory")):
        yield from _bytes(read(f"{folder}/memory.limit_in_bytes"))


def _machine_memory(read: Read) -> Iterator[int]:
    for line in (read("/proc/meminfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal":
            yield from (size * 1024 for size in _bytes(value.removesuffix("kB")))


def _ratio(texts: list[str]) -> Iterator[float]:
    """Yield quota / period; nothing for "max", -1 and what is no number."""
    with suppress(ValueError):
        quota, period = map(int, texts)
        if quota > 0 and period > 0:
            yield quota / period


def _bytes(text: str | None) -> Iterator[int]:
    with suppress(ValueError):
        size = int((text or "").strip())
        if 0 < size < UNLIMITED:
            yield size
