"""The P role over a transport: the request goes out through a mailbox and the answer comes from whoever serves it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stagewire import BatchTransport, Message
from stagewire_csp import Capacity, CspRuntime, Outcome
from stagewire_local.transport import LocalTransport

if TYPE_CHECKING:
    from tests.unit.csp.conftest import LogBook, Script

MakeScript = Callable[..., "Script"]


class MailboxRequester:
    """Sends each question as a message; the ticket is the task that waits for its reply."""

    def __init__(self, transport: BatchTransport, questions: list[str]) -> None:
        self._transport = transport
        self._questions = questions
        self.fates: list[tuple[Any, Outcome]] = []

    async def send(self) -> asyncio.Task[Message]:
        if not self._questions:
            raise StopAsyncIteration
        request = self._transport.request("captions", Message(self._questions.pop(0)), timeout=5)
        return asyncio.create_task(request)

    async def receive(self, ticket: asyncio.Task[Message]) -> Any:
        return (await ticket).payload

    def settled(self, resource: Any, outcome: Outcome) -> None:
        self.fates.append((resource, outcome))


async def respond(transport: BatchTransport) -> None:
    while True:
        async with transport.get_batch("captions", limit=3) as batch:
            for delivery in batch:
                await delivery.reply(f"re: {delivery.message.payload}")


def test_csp12_the_request_goes_over_a_transport_and_its_answer_comes_from_a_responder(
    make_script: MakeScript, book: LogBook
) -> None:
    async def main() -> None:
        transport = LocalTransport()
        await transport.open()
        script = make_script(count=9)
        for role in ("on_produce", "on_consume"):
            setattr(script, role, nothing)
        requester = MailboxRequester(transport.batches(), [f"question {number}" for number in range(9)])
        responder = asyncio.create_task(respond(transport.batches()))
        report = await CspRuntime(
            script, requester, script, capacity=Capacity(physical=2, t_slot=3, q_slot=3, q_pending=4), log=book.log
        ).run()
        responder.cancel()
        await asyncio.wait([responder])
        await transport.close()
        assert sorted(q for _, q in script.pairs) == [f"re: question {number}" for number in range(9)]
        assert [outcome for _, outcome in requester.fates] == [Outcome.CONSUMED] * 9
        assert report.balanced

    asyncio.run(main())


async def nothing(*_: Any) -> None:
    return None
