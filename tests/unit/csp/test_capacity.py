"""What is decided about capacity, and from what."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stagewire_csp import Capacity, HostLimits
from stagewire_csp.capacity import PROFILES, profile_of_environment
from stagewire_csp.host import host_limits, read_text, usable_cpus

GIB = 1024**3
MIB = 1024**2
BIG = HostLimits(cpus=64.0, memory=256 * GIB)


def test_csp9_explicit_beats_profile_beats_derived() -> None:
    assert Capacity.decide(BIG, physical=3, profile="large").physical == 3
    assert Capacity.decide(BIG, profile="large").physical == PROFILES["large"]
    assert Capacity.decide(BIG).physical == 64
    reasons = [Capacity.decide(BIG, **how).reason for how in ({"physical": 3}, {"profile": "large"}, {})]
    assert reasons == ["explicit", "profile large", "64 CPUs"]


def test_csp_trap_a_profile_is_capped_by_memory_and_an_explicit_cap_is_not() -> None:
    small = HostLimits(cpus=64.0, memory=1 * GIB)
    assert Capacity.decide(small, profile="large").physical == 2
    assert Capacity.decide(small, profile="large").reason == "profile large, capped by memory"
    assert Capacity.decide(small, physical=40).physical == 40
    assert Capacity.decide(small, memory_per_physical=128 * MIB).physical == 8


def test_csp9_what_is_derived_is_the_lesser_of_cpu_and_memory_and_at_least_one() -> None:
    assert Capacity.decide(HostLimits(cpus=4.0, memory=64 * GIB)).physical == 4
    assert Capacity.decide(HostLimits(cpus=4.0, memory=1 * GIB)).physical == 2
    assert Capacity.decide(HostLimits(cpus=0.5, memory=100 * MIB)).physical == 1
    assert Capacity.decide(HostLimits(cpus=2.5, memory=None)).physical == 2


def test_csp9_workers_follow_from_the_capacities() -> None:
    capacity = Capacity(physical=3, t_slot=5, q_slot=6, q_pending=7)
    assert (capacity.s_workers, capacity.p_workers, capacity.c_workers) == (5, 9, 5)


def test_csp9_the_other_capacities_are_in_proportion_unless_given() -> None:
    capacity = Capacity.decide(BIG, physical=2)
    assert (capacity.t_slot, capacity.q_slot, capacity.q_pending) == (8, 8, 16)
    capacity = Capacity.decide(BIG, physical=2, t_slot=1, q_slot=2, q_pending=3)
    assert (capacity.t_slot, capacity.q_slot, capacity.q_pending) == (1, 2, 3)


def test_csp9_a_wrong_profile_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no capacity profile 'lagre'; there are small.*did you mean 'large'\?"):
        Capacity.decide(BIG, profile="lagre")


@pytest.mark.parametrize("name", ["physical", "t_slot", "q_slot", "q_pending"])
def test_csp9_a_capacity_below_one_is_refused(name: str) -> None:
    values = {"physical": 1, "t_slot": 1, "q_slot": 1, "q_pending": 1} | {name: 0}
    with pytest.raises(ValueError, match=f"{name}=0"):
        Capacity(**values)  # type: ignore[arg-type]


def test_csp9_the_profile_comes_from_the_environment() -> None:
    assert profile_of_environment({"CAPACITY_PROFILE": "small"}) == "small"
    assert profile_of_environment({"CAPACITY_PROFILE": ""}) is None
    assert profile_of_environment({}) is None


def reader(files: dict[str, str]) -> Callable[[str], str | None]:
    return files.get


MEMINFO = {"/proc/meminfo": "MemFree:  1 kB\nMemTotal:       8388608 kB\n"}


def limits(files: dict[str, str], cpus: int = 8) -> HostLimits:
    return host_limits(reader(MEMINFO | files), lambda: cpus)


def test_csp9_without_a_control_group_the_machine_is_the_limit() -> None:
    assert limits({}) == HostLimits(8.0, 8 * GIB)
    assert host_limits(lambda _path: None, lambda: 4) == HostLimits(4.0, None)


def test_csp9_a_container_on_cgroup_v2() -> None:
    files = {
        "/proc/self/cgroup": "0::/\n",
        "/sys/fs/cgroup/cpu.max": "150000 100000\n",
        "/sys/fs/cgroup/memory.max": f"{2 * GIB}\n",
    }
    assert limits(files) == HostLimits(1.5, 2 * GIB)


def test_csp9_the_tightest_group_above_the_process_counts_on_cgroup_v2() -> None:
    files = {
        "/proc/self/cgroup": "0::/system.slice/work.service\n",
        "/sys/fs/cgroup/system.slice/work.service/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/system.slice/work.service/memory.max": "max\n",
        "/sys/fs/cgroup/system.slice/cpu.max": "400000 100000\n",
        "/sys/fs/cgroup/system.slice/memory.max": f"{GIB}\n",
    }
    assert limits(files) == HostLimits(4.0, GIB)


def test_csp9_a_container_on_cgroup_v1() -> None:
    """The path is the host's and the mount shows the container's own group at its root."""
    files = {
        "/proc/self/cgroup": "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{512 * MIB}\n",
    }
    assert limits(files) == HostLimits(2.0, 512 * MIB)


def test_csp9_no_limit_is_no_limit_on_cgroup_v1() -> None:
    files = {
        "/proc/self/cgroup": "5:memory:/\n4:cpu,cpuacct:/\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    assert limits(files) == HostLimits(8.0, 8 * GIB)


@pytest.mark.parametrize("text", ["", "nonsense\n", "1 2 3\n", "0 100000\n", "100000\n", "max 0\n"])
def test_csp9_a_limit_that_cannot_be_read_is_none(text: str) -> None:
    files = {"/proc/self/cgroup": "0::/\nnonsense\n", "/sys/fs/cgroup/cpu.max": text, "/sys/fs/cgroup/memory.max": text}
    assert limits({**files, "/sys/fs/cgroup/memory.max": "x"}) == HostLimits(8.0, 8 * GIB)


def test_csp9_this_host_has_limits() -> None:
    here = host_limits()
    assert 0 < here.cpus <= usable_cpus()
    assert read_text("/nonexistent/file") is None
