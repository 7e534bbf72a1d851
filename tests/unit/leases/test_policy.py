"""When a lease is kept alive, and which TTLs leave time to notice a failure."""

from __future__ import annotations

import pytest

from stagewire.leases import GENERAL, SHARED, TtlTooShort
from stagewire.leases.shared import DEFAULT_TTL


def test_ls3_the_two_policies_have_the_numbers_of_the_specification() -> None:
    assert (SHARED.interval(180), SHARED.jitter, SHARED.timeout, SHARED.concurrency) == (60, 5, 10, 32)
    assert SHARED.retry_after is None
    assert GENERAL.interval(30) == pytest.approx(30 / 3 + 1)
    assert (GENERAL.jitter, GENERAL.backend_timeout, GENERAL.timeout, GENERAL.concurrency) == (0, 1.5, 2, 64)
    assert (GENERAL.retry_after, GENERAL.report_every) == (0.1, 30)
    assert DEFAULT_TTL == 180


def test_ls3_a_ttl_too_short_to_retry_once_is_refused_with_the_smallest_that_works() -> None:
    assert GENERAL.smallest_ttl == pytest.approx(7.65)
    with pytest.raises(TtlTooShort, match=r"7\.65 s is the smallest"):
        GENERAL.require(7.6)
    GENERAL.require(7.66)


def test_ls3_a_policy_without_retry_must_notice_the_failure_before_the_end() -> None:
    assert SHARED.smallest_ttl == 75
    with pytest.raises(TtlTooShort, match="75 s"):
        SHARED.require(60)
