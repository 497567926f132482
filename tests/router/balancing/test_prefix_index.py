"""What the router knows of the blocks that replicas have cached."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.router.balancing import prefix_index
from services.router.balancing.prefix_index import PrefixIndex
from services.router.demand import Demand, Lane
from services.router.status import Identity
from services.shared.addresses import next_address, root_address
from services.shared.stream.blocks import BlockEvents

SIZE = 4
PROMPT = list(range(100, 117))  # four full blocks and one token
IDENTITY = Identity(
    model="m", version="w", tokenizer_fingerprint="t", layout_id="l", block_size=SIZE
)


def chain(
    token_ids: Sequence[int], salt: bytes = b"", version: str = "w", size: int = SIZE
) -> list[bytes]:
    """Addresses of the full blocks."""
    addresses = [root_address(version, "l", salt)]
    for start in range(0, len(token_ids) - size + 1, size):
        addresses.append(next_address(addresses[-1], token_ids[start : start + size]))
    return addresses[1:]


def demand(token_ids: Sequence[int] = PROMPT, salt: bytes = b"") -> Demand:
    return Demand(model="m", token_ids=token_ids, output_tokens=1, lane=Lane.SHORT, salt=salt)


def index_of(**stored: Sequence[bytes]) -> PrefixIndex:
    """An index that was told what each replica stored."""
    index = PrefixIndex()
    for name, addresses in stored.items():
        index.identify(name, IDENTITY)
        index.tell(name, BlockEvents(sequence=1, snapshot=True, stored=addresses))
    return index


def test_each_replica_counts_the_blocks_that_it_has_from_the_beginning_on() -> None:
    blocks = chain(PROMPT)
    index = index_of(all=blocks, some=blocks[:2], middle=blocks[1:], none=[])
    assert index.cached_tokens(demand()) == {"all": 16, "some": 8}


def test_the_last_token_is_computed_always() -> None:
    index = index_of(a=chain(PROMPT[:16]))
    assert index.cached_tokens(demand(PROMPT[:16])) == {"a": 12}
    assert index.cached_tokens(demand(PROMPT[:4])) == {}
    assert index.cached_tokens(demand(PROMPT[:1])) == {}


def test_callers_of_another_salt_share_nothing() -> None:
    index = index_of(a=chain(PROMPT, b"tenant"))
    assert index.cached_tokens(demand(salt=b"other")) == {}
    assert index.cached_tokens(demand(salt=b"tenant")) == {"a": 16}


def test_replicas_of_another_version_or_block_size_are_followed_by_addresses_of_their_own() -> None:
    index = index_of(a=chain(PROMPT))
    for name, version, size in (("b", "v", SIZE), ("c", "w", 8)):
        identity = Identity(
            model="m", version=version, tokenizer_fingerprint="t", layout_id="l", block_size=size
        )
        index.identify(name, identity)
        stored = chain(PROMPT, version=version, size=size)[:1]
        index.tell(name, BlockEvents(sequence=1, snapshot=True, stored=stored))
    assert index.cached_tokens(demand()) == {"a": 16, "b": 4, "c": 8}


def test_a_replica_counts_once_it_has_told_who_it_is() -> None:
    index = PrefixIndex()
    index.tell("a", BlockEvents(sequence=1, snapshot=True, stored=chain(PROMPT)))
    assert index.cached_tokens(demand()) == {}
    index.identify("a", IDENTITY)
    assert index.cached_tokens(demand()) == {"a": 16}


def test_a_replica_without_blocks_of_its_own_has_nothing_cached() -> None:
    index = index_of(a=chain(PROMPT))
    index.identify("router", Identity(model="m", version="w", tokenizer_fingerprint="t"))
    assert index.cached_tokens(demand()) == {"a": 16}


def test_changes_are_followed() -> None:
    blocks = chain(PROMPT)
    index = index_of(a=blocks[:1], b=blocks)
    index.tell("a", BlockEvents(sequence=2, stored=blocks[1:3]))
    index.tell("b", BlockEvents(sequence=2, dropped=[*blocks[1:], b"never told"]))
    assert index.cached_tokens(demand()) == {"a": 12, "b": 4}
    assert (index.known_blocks("a"), index.known_blocks("b")) == (3, 1)


def test_a_demand_that_waits_is_looked_up_by_what_is_known_each_time() -> None:
    blocks, asked = chain(PROMPT), demand()
    index = index_of(a=blocks[:1])
    assert index.cached_tokens(asked) == {"a": 4}
    index.tell("a", BlockEvents(sequence=2, stored=blocks[1:]))
    assert index.cached_tokens(asked) == {"a": 16}
    index.tell("a", BlockEvents(sequence=3, dropped=blocks[2:]))
    assert index.cached_tokens(asked) == {"a": 8}


def test_a_snapshot_replaces_what_was_known_of_that_replica() -> None:
    blocks = chain(PROMPT)
    index = index_of(a=blocks, b=blocks)
    index.tell("a", BlockEvents(sequence=9, snapshot=True, stored=blocks[:1]))
    assert index.cached_tokens(demand()) == {"a": 4, "b": 16}
    assert index.known_blocks("a") == 1


def test_what_is_forgotten_leaves_nothing_behind_and_its_place_is_used_again() -> None:
    blocks = chain(PROMPT)
    index = index_of(a=blocks, b=blocks[:1])
    index.forget("a")
    index.forget("never seen")
    assert index.cached_tokens(demand()) == {"b": 4}
    assert index.known_blocks("a") == 0
    index.identify("c", IDENTITY)
    assert index.cached_tokens(demand()) == {"b": 4}
    index.forget("b")
    index.forget("c")
    index.tell("d", BlockEvents(sequence=1, snapshot=True))
    index.forget("d")
    index._tidy(1)
    assert not index._holders
    assert not index._masks
    assert not index._members
    assert not any(index._by_bit)


def test_what_is_left_of_those_that_are_gone_goes_with_the_messages_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefix_index, "TIDIED", 3)
    blocks = chain(PROMPT)
    index = index_of(a=blocks, b=[], c=blocks[:1])
    index.forget("a")
    index.tell("b", BlockEvents(sequence=2))
    assert index.cached_tokens(demand()) == {"c": 4}
    assert len(index._masks) < len(blocks)
    index.tell("b", BlockEvents(sequence=3))
    assert list(index._masks) == blocks[:1]


def test_a_replica_that_comes_back_as_another_version_is_known_as_that() -> None:
    index = index_of(a=chain(PROMPT))
    other = Identity(
        model="m", version="v", tokenizer_fingerprint="t", layout_id="l", block_size=SIZE
    )
    index.identify("a", other)
    assert index.cached_tokens(demand()) == {}
    index.tell("a", BlockEvents(sequence=2, stored=chain(PROMPT, version="v")))
    assert index.cached_tokens(demand()) == {"a": 16}


def test_a_replica_that_tells_of_more_blocks_than_there_can_be_is_named_and_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(prefix_index, "MAX_TOLD_BLOCKS", 2)
    index = index_of(liar=chain(PROMPT))
    assert index.known_blocks("liar") == 2
    assert caplog.messages == ["liar tells of more than 2 blocks; the rest is ignored"]


def test_a_prompt_is_followed_for_a_bounded_number_of_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefix_index, "MAX_BLOCKS", 3)
    assert index_of(a=chain(PROMPT)).cached_tokens(demand()) == {"a": 12}
