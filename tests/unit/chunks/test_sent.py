"""``on_sent``: the owner is told when everything of a use was put."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from stagewire import Permanent, Retryable

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Message, Pair, Wire

MakePair = Callable[..., "Pair"]


def test_ch18_it_comes_after_the_terminal_was_put_and_not_before(wire: Wire, make_pair: MakePair) -> None:
    sent: list[str] = []
    pair = make_pair(wire, on_sent=sent.append)
    pair.save("r", 1, 2)
    pair.save("s", 1, final=True)
    pair.send()
    assert sent == ["s"]
    pair.save("r", 3, final=True)
    pair.send()
    assert sent == ["s", "r"]


def test_ch18_a_terminal_that_could_not_be_put_at_once_is_told_when_it_was(wire: Wire, make_pair: MakePair) -> None:
    sent: list[str] = []
    failures = [Retryable("later"), Retryable("later")]

    def fail(_key: str, message: Message) -> None:
        if message["finished"] and failures:
            raise failures.pop()

    wire.on_put = fail
    pair = make_pair(wire, on_sent=sent.append)
    pair.save("r", 1, final=True)
    pair.send(1)
    assert not sent
    pair.settle()
    assert sent == ["r"]


@pytest.mark.parametrize("cancelled", [True, False])
def test_ch6_a_cancel_and_an_error_are_terminals_too(wire: Wire, make_pair: MakePair, cancelled: bool) -> None:
    sent: list[str] = []

    def refuse(_key: str, message: Message) -> None:
        if not cancelled and message["data"] == 1:
            raise Permanent("never")

    wire.on_put = refuse
    pair = make_pair(wire, on_sent=sent.append)
    pair.save("r", 1)
    if cancelled:
        pair.snd.cancel_sender("r")
    pair.settle()
    assert sent == ["r"]
