"""The captioner as a small HTTP service: ``python -m stagewire_examples.captions.web --port 8970``.

``POST /caption`` takes an image as it is and answers with JSON: 200 with the facts, 422 when the image cannot be read,
503 when it is to be asked again later.
"""

from __future__ import annotations

import argparse
import sys
from http import HTTPStatus

from aiohttp import web
from pydantic import ValidationError

from stagewire_examples.captions.captioner import Captioner, Reply
from stagewire_examples.captions.options import PORT, CaptionerOptions

LARGEST = 64 * 1024 * 1024
"""Bytes of an image."""


def make_app(captioner: Captioner) -> web.Application:
    """Return the service."""

    async def caption(request: web.Request) -> web.Response:
        reply = await captioner.answer(await request.read())
        return web.json_response(text=reply.model_dump_json(), status=status_of(reply))

    app = web.Application(client_max_size=LARGEST)
    app.router.add_post("/caption", caption)
    return app


def status_of(reply: Reply) -> HTTPStatus:
    """Return the status that says the same as the reply."""
    if reply.facts is not None:
        return HTTPStatus.OK
    return HTTPStatus.SERVICE_UNAVAILABLE if reply.again else HTTPStatus.UNPROCESSABLE_ENTITY


def main() -> None:
    """Serve until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description="Say what is seen in an image, over HTTP")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=PORT, help=f"0 takes a free one; default: {PORT}")
    for name, field in CaptionerOptions.model_fields.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, default=field.default, help=f"{field.description} Default: {field.default}")
    arguments = vars(parser.parse_args())
    host, port = arguments.pop("host"), arguments.pop("port")
    try:
        captioner = Captioner(CaptionerOptions(**arguments))
    except ValidationError as error:
        parser.error(str(error))
    web.run_app(make_app(captioner), host=host, port=port, print=_tell)


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
