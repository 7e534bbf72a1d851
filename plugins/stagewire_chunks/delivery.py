"""One step of the SAVE thread: take what is due, build it, put it, and settle what came of it.

``Use.next_id``, and ``message`` and ``unsure_at`` of the items in hand, belong to the step: only one thread runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stagewire import ChunkKey, ChunkMessage
from stagewire_chunks.context import Context
from stagewire_chunks.lanes import CANCEL, CHUNK, FINAL, Item, Lane, Use
from stagewire_chunks.messages import Fault, Trouble, cancel_message, chunk_message, error_message, fault_of
from stagewire_chunks.outbox import Outbox
from stagewire_chunks.port import Parcel
from stagewire_chunks.settlement import Settlement

BuildPayload = Callable[[Any], Any]
"""Makes what travels out of a payload; runs on the SAVE thread. ``None``: there is nothing to send (CH-4)."""

BATCH = 64
"""Items that are taken per lock."""

SLICE = 0.002
"""Seconds after which a batch is settled even if it is not through."""


class Delivery:
    """Builds and puts. Without a builder and with a transport that can, chunks that wait travel together (TR-9).

    With a builder they are put one by one, each as soon as it is built: none waits for the build of another.
    """

    def __init__(
        self,
        outbox: Outbox,
        settlement: Settlement,
        context: Context,
        build: BuildPayload | None,
    ) -> None:
        self._outbox = outbox
        self._settlement = settlement
        self._port = context.port
        self._stage = context.stage
        self._clock = context.clock
        self._build = build
        self._put = self._put_together if context.port.coalesces and build is None else self._put_in_turn

    def step(self) -> float:
        """Do what is due; returns the seconds for which nothing is, 0 when more may be."""
        box = self._outbox
        with box.courteous:
            batch = box.backlog.take(self._clock(), BATCH)
        troubles: dict[Item, Trouble] = {}
        tried = self._put(batch, troubles)
        self._settlement.settle(batch[:tried], troubles, batch[tried:])
        with box.courteous:
            return box.pause()

    def _put_in_turn(self, batch: list[Item], troubles: dict[Item, Trouble]) -> int:
        """Put one by one, up to the first trouble or the end of the slice; returns how many were tried.

        The rest is given back, and taken again at once if its turn has come.
        """
        until = self._clock() + SLICE
        for tried, item in enumerate(batch, 1):
            trouble = self._put_one(item)
            if trouble is not None:
                troubles[item] = trouble
                return tried
            if self._outbox.stopped or self._clock() >= until:
                return tried
        return len(batch)

    def _put_one(self, item: Item) -> Trouble | None:
        """Build and put; one whose build gave nothing to send counts as put. The id advances after a put (CH-3)."""
        try:
            message = self._message(item)
        except Exception as error:  # noqa: BLE001 — a builder may raise anything; it fails its request only
            return Trouble(Fault.HOPELESS, error, "build_payload failed")
        if message is None:
            return None
        use = item.use
        try:
            self._port.put(ChunkKey(use.lane.request, self._stage, use.next_id), message)
        except Exception as error:  # noqa: BLE001 — a foreign transport may raise anything
            return _trouble(item, use.next_id, fault_of(error), error)
        use.next_id += 1
        self._settlement.counts.puts += 1
        return None if item.kind is CHUNK else self._echo(item)

    def _put_together(self, batch: list[Item], troubles: dict[Item, Trouble]) -> int:
        """Put all that is to be sent in one go; returns how many were tried: up to the next use of some id.

        That is put when the last use has been: it must never overtake its terminal.
        """
        uses: dict[Lane, Use] = {}
        sent: list[Item] = []
        parcels: list[Parcel] = []
        tried, stage, message_of = 0, self._stage, self._message
        for item in batch:
            use = item.use
            lane = use.lane
            if uses.setdefault(lane, use) is not use:
                break
            tried += 1
            message = message_of(item)
            if message is not None:
                sent.append(item)
                parcels.append((ChunkKey(lane.request, stage, use.next_id), message))
                use.next_id += 1
        if parcels:
            self._put_parcels(sent, parcels, troubles)
        return tried

    def _put_parcels(self, sent: list[Item], parcels: list[Parcel], troubles: dict[Item, Trouble]) -> None:
        errors = self._port.put_many(parcels)
        if any(errors):
            self._take_back(sent, parcels, errors, troubles)
        self._settlement.counts.puts += len(parcels) - len(troubles)
        for item in sent:
            if item.kind is not CHUNK and item not in troubles:
                trouble = self._echo(item)
                if trouble is not None:
                    troubles[item] = trouble

    @staticmethod
    def _take_back(
        sent: list[Item], parcels: list[Parcel], errors: Sequence[Exception | None], troubles: dict[Item, Trouble]
    ) -> None:
        """Return to the id that was not put; whatever of its use came after is to be put again, in order (CH-3)."""
        first: dict[Use, Trouble] = {}
        for item, (key, _), error in zip(sent, parcels, errors, strict=True):
            before = first.get(item.use)
            if before is None:
                if error is not None:
                    first[item.use] = troubles[item] = _trouble(item, key.chunk, fault_of(error), error)
                    item.use.next_id = key.chunk
            elif error is before.error and before.fault is not Fault.UNSURE:
                troubles[item] = before
            else:
                fault = Fault.UNSURE if error is None else fault_of(error)  # it may have got past the one that failed
                troubles[item] = _trouble(item, key.chunk, fault, error or before.error)

    def _echo(self, item: Item) -> Trouble | None:
        """Put a terminal that was put under the ids that follow as well, if it may be hidden under its own.

        A chunk whose put failed may have arrived all the same, and then hides the terminal that was put in its place:
        a transport that keeps runs lets the first message under a key count. It also drops what comes after the end of
        a run, so there the terminal counts once in any case (CH-18).
        """
        use = item.use
        use.ended = True
        while use.next_id <= use.unsure_until and self._port.keeps_runs and item.message is not None:
            try:
                self._port.put(ChunkKey(use.lane.request, self._stage, use.next_id), item.message)
            except Exception as error:  # noqa: BLE001 — a foreign transport may raise anything
                return _trouble(item, use.next_id, fault_of(error), error)
            use.next_id += 1
        return None

    def _message(self, item: Item) -> ChunkMessage | None:
        """Return what to put, or ``None`` when there is nothing to (CH-4, CH-6)."""
        if item.kind is CHUNK:
            if item.use.cancelled:
                return None
            if item.message is None:
                data = item.payload if self._build is None else self._build(item.payload)
                item.message = None if data is None else {"data": data, "finished": False}
                item.payload = None
        elif item.kind is FINAL:
            item.message = self._final(item)
        elif item.message is None:
            item.message = cancel_message() if item.kind is CANCEL else error_message(item.payload)
        return item.message

    def _final(self, item: Item) -> ChunkMessage:
        """Return the END, without data once its use was cancelled (CH-6)."""
        use = item.use
        fixed = item.may_be_whole and self._port.keeps_runs
        if use.cancelled and not (use.emptied or fixed):
            use.emptied = True
            return chunk_message(None, finished=True)
        if item.message is None:
            data = item.payload if self._build is None else self._build(item.payload)
            item.payload = None
            return chunk_message(data, finished=True)
        return item.message


def _trouble(item: Item, chunk: int, fault: Fault, error: Exception) -> Trouble:
    """Return a put's trouble, noting that the item may have arrived under the id."""
    if fault is Fault.UNSURE:
        item.unsure_at = chunk
        if item.kind is CHUNK:
            item.use.unsure_until = max(item.use.unsure_until, chunk + 1)
    return Trouble(fault, error, "put failed")
