"""Which node of a cluster has which slot."""

from __future__ import annotations

from typing import Any

import pytest

from services.engine.kv.stores.node_address import NodeAddress
from services.engine.kv.stores.slot_map import NOTHING_KNOWN, SLOTS, slot_map

ASKED = NodeAddress("10.0.0.9", 6379)
ONE = NodeAddress("10.0.0.1", 7001)


def test_ranges_belong_to_their_masters() -> None:
    answer = [
        [0, 99, [b"10.0.0.1", 7001, b"id", []], [b"10.0.0.7", 7007, b"replica"]],
        [200, SLOTS - 1, [b"", 7002, b"id"]],
    ]
    known = slot_map(answer, ASKED)
    assert known.owner(0) == known.owner(99) == ONE
    assert known.owner(100) is None
    assert known.owner(200) == NodeAddress(ASKED.host, 7002)
    assert known.addresses() == {ONE, NodeAddress(ASKED.host, 7002)}


def test_a_moved_slot_moves_alone() -> None:
    moved = NOTHING_KNOWN.moved(7, ONE)
    assert moved.owner(7) == ONE
    assert moved.owner(8) is None
    assert NOTHING_KNOWN.owner(7) is None


@pytest.mark.parametrize(
    "answer", [None, 7, b"OK", [7], [[0, 1]], [[0, 1, [b"host"]]], [["a", 1, [b"host", 1, b""]]]]
)
def test_what_is_no_map_is_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match="no map of the cluster's slots"):
        slot_map(answer, ASKED)


def test_slots_that_do_not_exist_are_left_out() -> None:
    known = slot_map([[-5, 10**12, [b"10.0.0.1", 7001, b"id"]]], ASKED)
    assert known.owner(0) == known.owner(SLOTS - 1) == ONE
