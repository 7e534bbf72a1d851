"""Payloads as bytes: msgpack with large buffers kept out of band. Never pickle.

``encode`` returns parts (a small head, and the large buffers by reference) for transports that can send several;
``join`` makes one ``bytes`` of them. ``decode`` takes either. Both cost the same for a buffer of any size.
"""

from stagewire.codec.decoder import decode
from stagewire.codec.encoder import encode
from stagewire.codec.extensions import MAX_DEPTH, OUT_OF_BAND
from stagewire.codec.weigh import weigh
from stagewire.codec.wire import join, size

__all__ = ["MAX_DEPTH", "OUT_OF_BAND", "decode", "encode", "join", "size", "weigh"]
