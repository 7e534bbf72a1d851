"""Payloads as bytes: msgpack with large buffers kept out of band. Never pickle."""

from stagewire.codec.weigh import weigh

__all__ = ["weigh"]
