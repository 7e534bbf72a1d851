"""Keeping leases alive (LS-2 … LS-6): one actor for many leases, and one lease shared by a whole controller."""

from stagewire.leases.keepalive import KeepaliveActor, Registration
from stagewire.leases.policy import GENERAL, SHARED, KeepalivePolicy, TtlTooShort
from stagewire.leases.shared import SharedLease

__all__ = ["GENERAL", "SHARED", "KeepaliveActor", "KeepalivePolicy", "Registration", "SharedLease", "TtlTooShort"]
