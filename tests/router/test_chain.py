"""Addresses of a prompt are hashed once, as far as they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pytest

from services.router import chain as module
from services.router.chain import Chain, Layout
from services.shared.addresses import next_address, root_address

LAYOUT = Layout("v", "l", 4)
IDS = list(range(14))


def expected(salt: bytes) -> list[bytes]:
    first = next_address(root_address("v", "l", salt), IDS[:4])
    second = next_address(first, IDS[4:8])
    return [first, second, next_address(second, IDS[8:12])]


@pytest.mark.parametrize("salt", [b"", b"tenant"])
def test_a_chain_has_the_addresses_of_the_full_blocks(salt: bytes) -> None:
    assert list(Chain(LAYOUT, salt, IDS)) == expected(salt)
    assert list(Chain(LAYOUT, salt, IDS[:12])) == expected(salt)
    assert list(Chain(LAYOUT, salt, IDS[:3])) == []


def test_no_address_is_hashed_twice_or_before_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed: list[Sequence[int]] = []

    def counted(parent: bytes, token_ids: Sequence[int]) -> bytes:
        hashed.append(token_ids)
        return next_address(parent, token_ids)

    monkeypatch.setattr(module, "next_address", counted)
    chain = Chain(LAYOUT, b"", IDS)
    assert list(islice(chain, 2)) == expected(b"")[:2]
    assert hashed == [IDS[:4], IDS[4:8]]
    assert list(chain) == list(chain) == expected(b"")
    assert hashed == [IDS[:4], IDS[4:8], IDS[8:12]]
