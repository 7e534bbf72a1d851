"""One step of the SAVE thread: take what is due, build it, put it, and settle what came of it.

``Use.next_id``, and ``message`` and ``unsure`` of the items in hand, belong to the step: only one thread runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stagewire import ChunkKey, ChunkMessage, Clock, StageId
from stagewire_chunks.lanes import Item, Kind, Use
from stagewire_chunks.messages import Fault, Trouble, cancel_message, chunk_message, error_message, fault_of
from stagewire_chunks.outbox import Outbox
from stagewire_chunks.port import Parcel, Port
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
        port: Port,
        stage: StageId,
        build: BuildPayload | None,
        settlement: Settlement,
        clock: Clock,
    ) -> None:
        self._outbox = outbox
        self._port = port
        self._stage = stage
        self._build = build
        self._settlement = settlement
        self._clock = clock
        self._group = BATCH if port.coalesces and build is None else 1

    def step(self) -> float:
        """Do what is due; returns the seconds for which nothing is, 0 when more may be."""
        box = self._outbox
        with box.lock:
            batch = box.backlog.take(self._clock(), BATCH)
        if batch:
            self._send(batch)
        else:
            self._settlement.settle([], [])
        with box.lock:
            return box.pause()

    def _send(self, batch: list[Item]) -> None:
        """Put item by item or together, up to the first trouble; the rest is given back and taken again at once."""
        results: list[tuple[Item, Trouble | None]] = []
        until = self._clock() + SLICE
        for start in range(0, len(batch), self._group):
            group = batch[start : start + self._group]
            troubles = self._put(group)
            results += zip(group, troubles, strict=True)
            if any(troubles) or self._outbox.stopped or self._clock() >= until:
                break
        self._settlement.settle(results, batch[len(results) :])

    def _put(self, items: Sequence[Item]) -> list[Trouble | None]:
        """Build and put; an item whose build gave nothing to send counts as put."""
        troubles: dict[Item, Trouble] = {}
        ahead: dict[Use, int] = {}
        sent: list[Item] = []
        parcels: list[Parcel] = []
        for item in items:
            try:
                message = self._message(item)
            except Exception as error:  # noqa: BLE001 — a builder may raise anything; it fails its request only
                troubles[item] = Trouble(Fault.HOPELESS, error, "build_payload failed")
                continue
            if message is not None:
                chunk = ahead.get(item.use, item.use.next_id)
                ahead[item.use] = chunk + 1
                sent.append(item)
                parcels.append((ChunkKey(item.use.lane.request, self._stage, chunk), message))
        self._note(sent, self._port.put(parcels) if parcels else [], troubles)
        return [troubles.get(item) for item in items]

    def _note(self, sent: list[Item], errors: Sequence[Exception | None], troubles: dict[Item, Trouble]) -> None:
        """Advance the ids of what was put; what comes after a failure of the same use is to be put again (CH-3)."""
        first: dict[Use, Exception] = {}
        for item, error in zip(sent, errors, strict=True):
            use = item.use
            if use in first:
                fault = Fault.UNSURE if error is None else fault_of(error)  # it may have got past the one that failed
                troubles[item] = Trouble(fault, error or first[use], "put failed")
            elif error is not None:
                first[use] = error
                troubles[item] = Trouble(fault_of(error), error, "put failed")
            else:
                use.next_id += 1

    def _message(self, item: Item) -> ChunkMessage | None:
        match item.kind:
            case Kind.CHUNK:
                return self._chunk(item)
            case Kind.FINAL:
                item.message = self._final(item)
            case Kind.CANCEL:
                item.message = item.message or cancel_message()
            case Kind.ERROR:
                item.message = item.message or error_message(item.payload)
        return item.message

    def _chunk(self, item: Item) -> ChunkMessage | None:
        if not item.wanted:
            return None
        if item.message is None:
            data = self._built(item)
            if data is None:
                return None
            item.message = chunk_message(data, finished=False)
        return item.message

    def _final(self, item: Item) -> ChunkMessage:
        """Return the END, without data once its use was cancelled (CH-6).

        A message that may have arrived as the only one of its use stays as it is: it is known by its identity then.
        """
        alone = item.unsure and not item.use.next_id
        if item.use.cancelled and not item.emptied and not (alone and item.message):
            item.emptied = True
            return chunk_message(None, finished=True)
        return item.message or chunk_message(self._built(item), finished=True)

    def _built(self, item: Item) -> Any:
        payload, item.payload = item.payload, None
        return payload if self._build is None else self._build(payload)
