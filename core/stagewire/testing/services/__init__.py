"""Private RabbitMQ and Redis instances for tests, started from the installed programs, and a TCP proxy that injures.

Each instance has its own port, data directory and node name, so a test may kill it. For synchronous test code; the
proxy runs on a thread of its own.
"""

from stagewire.testing.services.process import ServiceUnavailable, free_port
from stagewire.testing.services.proxy import FaultProxy
from stagewire.testing.services.rabbitmq import PrivateRabbitMQ
from stagewire.testing.services.redis import PrivateRedis

__all__ = ["FaultProxy", "PrivateRabbitMQ", "PrivateRedis", "ServiceUnavailable", "free_port"]
