"""Makes logs from a seed, whose content and faults are known exactly: for tests and benchmarks."""

from stagewire_logs.testing.csp_runs import CspFaults, csp_run
from stagewire_logs.testing.damaged import Damaged, damaged
from stagewire_logs.testing.request_runs import RequestFaults, request_run
from stagewire_logs.testing.writing import Event, Stopwatch, encode

__all__ = [
    "CspFaults",
    "Damaged",
    "Event",
    "RequestFaults",
    "Stopwatch",
    "csp_run",
    "damaged",
    "encode",
    "request_run",
]
