from __future__ import annotations

import copy
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire import CodecError
from stagewire_chunks import HandOver
from stagewire_chunks.snapshot import snapshot

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Pair


class Point(NamedTuple):
    x: int
    tags: list[str]


@dataclass
class Record:
    name: str
    parts: list[int] = field(default_factory=list)


def put_in(container: Any) -> None:
    container.append("late")


MUTABLES: list[tuple[Any, Callable[[Any], object]]] = [
    (["a", 1, None], lambda v: v.append("late")),
    ([["a"], {"k": ["b"]}], lambda v: v[1]["k"].append("late")),
    ({"k": 1}, lambda v: v.update(k=2)),
    ({"k": {"deep": [1]}}, lambda v: v["k"]["deep"].append("late")),
    ((1, ["a"]), lambda v: v[1].append("late")),
    ({1, "a"}, lambda v: v.add("late")),
    (bytearray(b"abc"), lambda v: v.extend(b"late")),
    (Point(1, ["t"]), lambda v: v.tags.append("late")),
    (Record("n", [1]), lambda v: v.parts.append("late")),
    (OrderedDict(a=[1]), lambda v: v["a"].append("late")),
    (defaultdict(list, a=[1]), lambda v: v["a"].append("late")),
    ([Record("n", [1]), {"r": Record("m", [2])}], lambda v: v[1]["r"].parts.append("late")),
]


@pytest.mark.parametrize(("value", "mutate"), MUTABLES, ids=lambda each: type(each).__name__)
def test_ch2_what_is_changed_later_never_shows(value: Any, mutate: Callable[[Any], object]) -> None:
    live, expected = copy.deepcopy(value), copy.deepcopy(value)
    copied = snapshot(live)
    mutate(live)
    assert copied == expected
    assert type(copied) is type(expected)
    assert live != expected


def test_ch2_arrays_and_views_are_copied() -> None:
    array = np.arange(4)
    buffer = bytearray(b"abcd")
    wide = memoryview(bytearray(8)).cast("i")
    copied = snapshot({"array": array, "view": memoryview(buffer), "wide": wide})
    array[0], buffer[0], wide[0] = 9, 0, 7
    assert copied["array"].tolist() == [0, 1, 2, 3]
    assert copied["view"] == b"abcd"
    assert (copied["wide"].format, copied["wide"].tolist()) == ("i", [0, 0])


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 2.5, 1j, "text", b"bytes", range(3), ..., (1, "a", b"b"), frozenset({1, 2}), memoryview(b"fixed")],
    ids=repr,
)
def test_ch2_what_cannot_change_is_shared(value: Any) -> None:
    assert snapshot(value) is value
    assert snapshot([value])[0] is value


def test_ch2_aliases_stay_aliases_and_cycles_end() -> None:
    shared = [1]
    left, right = snapshot([shared, {"again": shared}])
    assert left is right["again"]
    assert left is not shared
    circle: list[Any] = [1]
    circle.append({"back": (circle, [])})
    copied = snapshot(circle)
    assert copied[1]["back"][0] is copied
    assert copied is not circle


def test_ch2_an_alias_inside_a_foreign_object_stays_one() -> None:
    shared = [1]
    copied = snapshot([shared, Record("n", shared)])
    assert copied[0] is copied[1].parts


def test_ch2_a_frozenset_of_foreign_things_is_copied() -> None:
    class Tag:
        pass

    tag = Tag()
    (copied,) = snapshot(frozenset({tag}))
    assert copied is not tag


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=2) | st.tuples(st.integers(), st.integers()), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


def changeable(value: Any) -> set[int]:
    """The ids of all lists and dicts in a value."""
    if isinstance(value, list | tuple):
        own = {id(value)} if isinstance(value, list) else set()
        return own.union(*map(changeable, value))
    if isinstance(value, dict):
        return {id(value)}.union(*map(changeable, value.values()))
    return set()


@given(plain)
def test_ch2_a_snapshot_equals_its_original_and_shares_nothing_changeable(value: Any) -> None:
    copied = snapshot(value)
    assert copied == value
    assert not changeable(copied) & changeable(value)


@given(plain)
def test_ch2_hand_over_shares_exactly_what_was_handed_over(value: Any) -> None:
    copied = snapshot([value, HandOver(value)])
    assert copied[1] is value


def test_ch2_hand_over_works_at_the_top_inside_and_inside_foreign_objects() -> None:
    big = bytearray(1 << 16)
    assert snapshot(HandOver(big)) is big
    assert snapshot({"big": HandOver(big)})["big"] is big
    assert snapshot(Record("n", HandOver(big))).parts is big  # type: ignore[arg-type]
    assert repr(HandOver(big)) == "HandOver(bytearray)"


def test_ch2_a_handed_over_value_travels_bare(pair: Pair) -> None:
    big = bytearray(1 << 16)
    pair.rcv.load_async("r")
    pair.save("r", HandOver(big), final=True)
    assert pair.snd.stats()["queued_bytes"] >= len(big)
    pair.settle()
    assert pair.received["r"][0]["data"] is big


def test_ch2_what_cannot_be_copied_is_refused_with_the_remedy(pair: Pair) -> None:
    with pytest.raises(CodecError, match=r"request 'r' cannot be copied .*HandOver") as caught:
        pair.save("r", {"lock": threading.Lock()})
    assert isinstance(caught.value.__cause__, TypeError)
    pair.assert_quiescent()


def test_ch2_nesting_beyond_reason_is_refused_not_fatal(pair: Pair) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(CodecError, match="RecursionError"):
        pair.save("r", deep)
    while deep:  # take it apart piece by piece: freeing it at once would recurse as well
        deep = deep.pop()
