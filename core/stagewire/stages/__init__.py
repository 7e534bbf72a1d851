"""Makes stages of functions and classes, blocking ones included, so that a person writes a few lines."""

from stagewire.stages.blocking import BlockingRequest
from stagewire.stages.make import Blocking, stage_provider

__all__ = ["Blocking", "BlockingRequest", "stage_provider"]
