"""Thumbnails and captions, made apart and consumed in pairs: the stages of ``configs/csp-captions.yaml``.

`thumbnails` makes T with Pillow, `asking` sends the requests that bring Q, `sheet` consumes the pairs. `captioner` is
the external service that is asked; it is reached over a transport (`responder`) or over HTTP (`web`).
"""
