"""Large payloads as references: temporary keys that somebody always owns, and the claim-check over them."""

from stagewire.claims.claim_check import Claim, ClaimCheck
from stagewire.claims.temp_keys import TemporaryKeys, Ticket, TooManyKeys
from stagewire.claims.transport import ClaimedTransport

__all__ = ["Claim", "ClaimCheck", "ClaimedTransport", "TemporaryKeys", "Ticket", "TooManyKeys"]
