"""What is offered to a replica, and how people are told of it."""

from __future__ import annotations

from services.router.balancing.offer import NO_OFFER, Offer


def test_a_source_either_has_the_blocks_or_computes_them() -> None:
    cached, computed = Offer(source="p", tokens=64), Offer(source="p", tokens=64, is_prefill=True)
    assert (cached.peer, cached.prefill) == ("p", None)
    assert (computed.peer, computed.prefill) == (None, "p")
    assert (NO_OFFER.peer, NO_OFFER.prefill) == (None, None)


def test_people_are_told_how_much_it_is_and_not_from_whom() -> None:
    assert Offer(source="p", tokens=64).told() == "64 cached at another"
    assert Offer(source="p", tokens=64, is_prefill=True).told() == "64 prefilled by another"
    assert NO_OFFER.told() == ""
