"""The captioner behind a mailbox: in the process of who asks, or in another one as ``pipeline: captioner``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from stagewire import BatchTransport, BuildContext, Delivery, Job, Progress, RunReport
from stagewire.lifecycle import StopSignal, TaskRegistry
from stagewire_examples.captions.captioner import Captioner, Reply
from stagewire_examples.captions.options import ResponderOptions, ServingOptions
from stagewire_examples.captions.question import Question

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class Responder:
    """Serves a mailbox with so many workers.

    Args:
        batches: The transport.
        mailbox: Its mailbox.
        options: How it serves.
        log: Where failures of a worker are reported.
    """

    def __init__(
        self, batches: BatchTransport, mailbox: str, options: ServingOptions, log: FilteringBoundLogger
    ) -> None:
        self.captioner = Captioner(options)
        self._batches = batches
        self._mailbox = mailbox
        self._workers = options.workers
        self._tasks = TaskRegistry("captioner", log=log)

    def start(self) -> None:
        """Start the workers."""
        for number in range(self._workers):
            self._tasks.spawn(self._serve(), name=f"captioner {number}")

    async def close(self) -> None:
        """End them. A request that one had in hand goes back to the mailbox. Idempotent."""
        self._tasks.close()
        self._tasks.cancel_all()
        await self._tasks.join()

    async def _serve(self) -> None:
        while True:
            async with self._batches.get_batch(self._mailbox) as batch:
                for delivery in batch:
                    reply = await self._answer(delivery)
                    await delivery.reply(reply.model_dump(mode="json"))

    async def _answer(self, delivery: Delivery) -> Reply:
        try:
            question = Question.model_validate(delivery.message.payload)
        except ValidationError as error:
            return Reply(error=f"this is no question for a captioner: {error}")
        return await self.captioner.answer(question.image)


class CaptionerPipeline:
    """``pipeline: captioner``: serves a mailbox of the pipeline's transport until it is stopped.

    Args:
        options: The file's sections.
        context: What the App offers.
    """

    def __init__(self, options: ResponderOptions, context: BuildContext) -> None:
        self._options = options
        self._transport = context.transport()
        self._log = context.log
        self._responder: Responder | None = None
        self._stop = StopSignal()

    def graph(self) -> str:
        """Return it as a Mermaid flowchart."""
        return f'flowchart LR\n    mailbox[("{self._options.mailbox}")] --> captioner --> mailbox\n'

    async def run(self, job: Job) -> RunReport:
        """Serve until the stop."""
        self._responder = Responder(self._transport.batches(), self._options.mailbox, self._options, self._log)
        self._responder.start()
        job.observe(Progress(counters={"workers": self._options.workers}))
        await self._stop.wait()
        await self._responder.close()
        served = self._responder.captioner.served
        counts = {name: getattr(served, name) for name in served.__slots__}
        return RunReport(rows=[(name, str(count)) for name, count in counts.items()], details=counts, stopped=True)

    async def prepare_shutdown(self) -> None:
        """Take no further request."""
        self._stop.set("shutdown")

    async def shutdown(self) -> None:
        """End the workers. Idempotent, also when `run` never ran."""
        self._stop.set("shutdown")
        if self._responder is not None:
            await self._responder.close()
