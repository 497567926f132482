"""Which blocks are worth writing."""

from __future__ import annotations

from services.engine.admission import Admission
from services.engine.kv.tier import Tier
from services.engine.kv.worth import KNOWN_BLOCKS, KNOWN_S, Worth
from services.engine.sequence import Sequence
from services.shared.stream.generation import CacheControl, Generation
from tests.engine.harness import MODEL, TIMEOUT_MS

SIZE = 4


def sequence(tokens: int = 40, pinned: int = 0) -> Sequence:
    generation = Generation(
        request_id="r",
        prompt_ids=[*range(10, 10 + tokens)],
        generated_ids=[5] * 20,
        cache=CacheControl(pinned_tokens=pinned),
    )
    return Admission(MODEL, TIMEOUT_MS).admit(generation)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_beginning_of_a_prompt_is_worth_it_at_once() -> None:
    assert Worth(18, SIZE).leading(sequence().generation) == 4
    assert Worth(0, SIZE).leading(sequence().generation) == 0


def test_what_is_pinned_is_worth_it_wherever_the_beginning_ends() -> None:
    assert Worth(8, SIZE).leading(sequence(pinned=25).generation) == 6


def test_outputs_are_not_worth_it_at_once() -> None:
    assert Worth(4096, SIZE).leading(sequence(pinned=4096).generation) == 10


def test_what_is_used_again_is_worth_it_until_it_is_stored() -> None:
    worth, asked = Worth(0, SIZE), sequence()
    assert worth.again(asked, 3) == [0, 1, 2]
    worth.stored(asked.full_addresses(SIZE)[:2])
    assert worth.again(asked, 3) == [2]


def test_what_came_from_the_store_is_there() -> None:
    worth, asked = Worth(4096, SIZE), sequence()
    addresses = asked.full_addresses(SIZE)
    asked.fetched = {addresses[0]: Tier.SERVICE, addresses[1]: Tier.HOST}
    assert worth.again(asked, 2) == [1]
    asked.fetched = {}
    assert worth.again(asked, 2) == [1]


def test_what_came_from_another_engine_counts_as_computed() -> None:
    asked = sequence()
    asked.fetched = dict.fromkeys(asked.full_addresses(SIZE)[:4], Tier.PEER)
    assert Worth(8, SIZE).again(asked, 4) == [0, 1]


def test_what_is_used_again_much_later_is_offered_again() -> None:
    clock = Clock()
    worth, asked = Worth(0, SIZE, clock), sequence()
    worth.stored(asked.full_addresses(SIZE))
    clock.now += KNOWN_S - 1
    assert worth.again(asked, 5) == []
    clock.now += 1
    assert worth.again(asked, 5) == [0, 1, 2, 3, 4]


def test_what_is_remembered_is_bounded() -> None:
    worth, asked = Worth(0, SIZE), sequence()
    worth.stored(asked.full_addresses(SIZE)[:2])
    worth.stored(b"%016d" % number for number in range(KNOWN_BLOCKS - 1))
    assert worth.again(asked, 2) == [0]
