"""Fragments are sorted by the write that they belong to."""

from __future__ import annotations

from services.engine.kv.store import StoreFailed, StoreTimeout
from services.engine.kv.stores.fragment import Fragment, Stripe, sealed_fragment
from services.engine.kv.stores.stripe_reading import StripeReading
from tests.engine.kv.stores.bed import LAYOUT_DIGEST, address_of

FIRST = Stripe(code=1, data=2, parity=2, size=8, digest=b"first".ljust(16))
SECOND = Stripe(code=1, data=2, parity=2, size=8, digest=b"second".ljust(16))


def reading() -> StripeReading:
    return StripeReading(address_of(1), LAYOUT_DIGEST, data=2, nodes=4)


def share(stripe: Stripe, index: int) -> bytes:
    return sealed_fragment(Fragment(stripe, index, b"payload"), address_of(1), LAYOUT_DIGEST)


def test_fragments_of_two_writes_are_never_mixed() -> None:
    read = reading()
    read.add(0, share(FIRST, 0))
    read.add(1, share(SECOND, 1))
    assert read.whole() is None
    read.add(3, share(SECOND, 3))
    whole = read.whole()
    assert whole is not None
    stripe, fragments = whole
    assert stripe == SECOND
    assert [fragment.index for fragment in fragments] == [1, 3]
    assert read.others(SECOND) == {0}


def test_a_fragment_on_the_wrong_node_counts_as_damaged() -> None:
    read = reading()
    read.add(0, share(FIRST, 1))
    read.add(1, share(FIRST, 1))
    assert read.damaged == {0}
    assert read.whole() is None


def test_what_a_node_has_not_or_has_spoiled_can_be_mended() -> None:
    read = reading()
    read.add(0, None)
    read.add(1, b"garbage")
    read.add(2, StoreFailed("dead"))
    assert read.others(FIRST) == {0, 1}
    assert read.found


def test_a_failure_tells_how_many_and_the_first_cause() -> None:
    read = reading()
    assert read.failure() is None
    read.add(0, StoreTimeout("late"))
    late = read.failure()
    assert isinstance(late, StoreTimeout)
    assert str(late) == "1 of 4 nodes fail: late"
    read.add(1, StoreFailed("dead"))
    assert not isinstance(read.failure(), StoreTimeout)
