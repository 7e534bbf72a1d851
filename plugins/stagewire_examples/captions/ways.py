"""The two ways to the captioner: a mailbox of any transport, and HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stagewire import BuildContext, Message, Permanent, Retryable
from stagewire_examples.captions.options import HttpOptions, MailboxOptions
from stagewire_examples.captions.question import Question
from stagewire_examples.captions.responder import Responder

if TYPE_CHECKING:
    import aiohttp
    from structlog.typing import FilteringBoundLogger

CLIENT_ERROR, SERVER_ERROR = 400, 500


class ByMailbox:
    """Request and reply over the pipeline's transport; serves the mailbox itself when the options say so.

    Args:
        options: Which mailbox.
        context: What has the transport.
    """

    def __init__(self, options: MailboxOptions, context: BuildContext) -> None:
        self._options = options
        self._transport = context.transport()
        self._responder: Responder | None = None

    async def open(self, log: FilteringBoundLogger) -> None:
        """Start the captioner, if it is to be in this process."""
        if self._options.captioner is not None:
            batches, options = self._transport.batches(), self._options
            self._responder = Responder(batches, options.mailbox, self._options.captioner, log)
            self._responder.start()

    async def request(self, name: str, image: bytes, timeout: float) -> Any:
        """Put the question and wait for the reply."""
        question = Message(Question(name=name, image=image).model_dump())
        reply = await self._transport.batches().request(self._options.mailbox, question, timeout=timeout)
        return reply.payload

    async def close(self) -> None:
        """End the captioner in this process."""
        if self._responder is not None:
            await self._responder.close()


class ByHttp:
    """A POST of the image, answered in JSON.

    Args:
        options: Where.
    """

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._session: aiohttp.ClientSession | None = None

    async def open(self, _log: FilteringBoundLogger) -> None:
        """Make the session; connects when something is asked."""
        import aiohttp  # noqa: PLC0415 — a driver, loaded when a pipeline uses it

        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=self._options.connections))

    async def request(self, name: str, image: bytes, timeout: float) -> Any:
        """Post the image and return what was said, by the service itself where it is not well, too."""
        import aiohttp  # noqa: PLC0415 — as above

        assert self._session is not None, "open it first"
        limit = aiohttp.ClientTimeout(total=timeout)
        url, headers = self._options.url, {"Content-Type": "application/octet-stream"}
        try:
            async with self._session.post(url, data=image, headers=headers, timeout=limit) as response:
                if response.content_type == "application/json":
                    return await response.json()
                text = f"{url} answered {response.status} {response.reason} about {name}"
        except TimeoutError as error:
            raise Retryable(f"{url} did not answer within {timeout} s") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise Retryable(f"{url} cannot be reached or understood: {error}") from error
        raise Retryable(text) if response.status >= SERVER_ERROR else Permanent(text)

    async def close(self) -> None:
        """End the connections."""
        if self._session is not None:
            await self._session.close()
