"""RabbitMQ transport: chunks for threads and mailboxes for asyncio, over two pika connections."""

from stagewire_rabbitmq.options import RabbitMQOptions
from stagewire_rabbitmq.plugin import make_transport

__all__ = ["RabbitMQOptions", "make_transport"]
