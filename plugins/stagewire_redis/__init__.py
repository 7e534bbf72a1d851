"""KV and lease backends in Redis or Valkey, for stages on many machines."""

from stagewire_redis.options import RedisKVOptions, RedisLeaseOptions
from stagewire_redis.plugin import make_kv, make_lease

__all__ = ["RedisKVOptions", "RedisLeaseOptions", "make_kv", "make_lease"]
