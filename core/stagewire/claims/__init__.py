"""Large payloads as references: temporary keys that somebody always owns, and the claim-check over them."""

from stagewire.claims.temp_keys import TemporaryKeys, Ticket, TooManyKeys

__all__ = ["TemporaryKeys", "Ticket", "TooManyKeys"]
