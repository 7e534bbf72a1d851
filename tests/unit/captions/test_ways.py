"""The two ways to the captioner, and what each makes of a service that is not there or not well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from aiohttp import web
from aiohttp.test_utils import TestServer

from stagewire import Job, Message, Permanent, Retryable, RunReport, StageContext
from stagewire.testing import StubContext
from stagewire_examples.captions.captioner import Captioner
from stagewire_examples.captions.options import CaptionerOptions, HttpOptions, MailboxOptions, ResponderOptions
from stagewire_examples.captions.responder import CaptionerPipeline
from stagewire_examples.captions.ways import ByHttp, ByMailbox
from stagewire_examples.captions.web import make_app
from stagewire_local.transport import LocalTransport

pytestmark = pytest.mark.integration

MakeJpeg = Callable[..., bytes]


async def asked_over_http(app: web.Application, context: StageContext, image: bytes, timeout: float = 5) -> Any:
    async with TestServer(app) as server:
        way = ByHttp(HttpOptions(url=str(server.make_url("/caption"))))
        await way.open(context.log)
        try:
            return await way.request("a.jpg", image, timeout)
        finally:
            await way.close()
            await asyncio.sleep(0.01)  # aiohttp closes its sockets a moment later


def serving(answer: Callable[[], web.Response]) -> web.Application:
    async def handle(_request: web.Request) -> web.Response:
        return answer()

    app = web.Application()
    app.router.add_post("/caption", handle)
    return app


@pytest.mark.parametrize(("fail", "image", "key"), [(0, True, "facts"), (1, True, "again"), (0, False, "error")])
def test_what_the_service_says_comes_back_whatever_its_status(
    context: StageContext, make_jpeg: MakeJpeg, fail: float, image: bool, key: str
) -> None:
    app = make_app(Captioner(CaptionerOptions(delay=0, fail=fail)))
    reply = asyncio.run(asked_over_http(app, context, make_jpeg() if image else b"none"))
    assert reply[key]
    assert (reply["facts"] is None) == (key != "facts")


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (lambda: web.Response(status=502, text="gateway"), Retryable, "502 Bad Gateway"),
        (lambda: web.Response(status=404), Permanent, "404 Not Found about a.jpg"),
        (lambda: web.Response(text="{", content_type="application/json"), Retryable, "understood"),
    ],
)
def test_a_service_that_says_nothing_of_use_is_named(
    context: StageContext, answer: Callable[[], web.Response], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        asyncio.run(asked_over_http(serving(answer), context, b""))


def test_a_service_that_is_late_or_not_there_may_be_asked_again(context: StageContext) -> None:
    app = make_app(Captioner(CaptionerOptions(delay=60)))
    with pytest.raises(Retryable, match=r"did not answer within 0\.05 s"):
        asyncio.run(asked_over_http(app, context, b"", 0.05))

    async def nobody() -> None:
        way = ByHttp(HttpOptions(url="http://127.0.0.1:9/caption"))
        await way.open(context.log)
        try:
            await way.request("a.jpg", b"", 5)
        finally:
            await way.close()

    with pytest.raises(Retryable, match="cannot be reached"):
        asyncio.run(nobody())


def test_csp12_a_captioner_in_a_pipeline_of_its_own_serves_until_the_stop(
    make_jpeg: MakeJpeg, context: StageContext, tmp_path: Path
) -> None:
    async def main() -> tuple[Any, RunReport]:
        transport = LocalTransport()
        await transport.open()
        build = StubContext(backends={"transport": transport})
        pipeline = CaptionerPipeline(ResponderOptions(delay=0), build)
        assert "captioner" in pipeline.graph()
        running = asyncio.create_task(pipeline.run(Job(None, tmp_path)))
        way = ByMailbox(MailboxOptions(), build)
        await way.open(context.log)
        reply = await way.request("a.jpg", make_jpeg(), 10)
        await way.close()
        await pipeline.prepare_shutdown()
        report = await running
        await pipeline.shutdown()
        with pytest.raises(Retryable):
            await transport.batches().request("captions", Message({}), timeout=0.01)
        await transport.close()
        return reply, report

    reply, report = asyncio.run(main())
    assert reply["facts"]["width"] == 60
    assert (report.details["answered"], report.stopped) == (1, True)
