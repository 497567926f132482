"""Addresses tell apart whatever may make a block's content different."""

from __future__ import annotations

from services.shared.addresses import ADDRESS_BYTES, next_address, root_address


def test_the_same_chain_has_the_same_address() -> None:
    root = root_address("model", "layout", b"")
    assert next_address(root, [1, 2]) == next_address(root, [1, 2])
    assert len(next_address(root, [1, 2])) == ADDRESS_BYTES


def test_model_layout_salt_parent_and_tokens_all_count() -> None:
    roots = {
        root_address("model", "layout", b""),
        root_address("model2", "layout", b""),
        root_address("model", "layout2", b""),
        root_address("model", "layout", b"salt"),
        root_address("modell", "ayout", b""),
        root_address("model", "layout", b"", "tenant"),
        root_address("model", "layout", b"tenant", ""),
    }
    assert len(roots) == 7
    root = root_address("model", "layout", b"")
    first = next_address(root, [1, 2])
    assert len({first, next_address(root, [2, 1]), next_address(first, [1, 2])}) == 3


def test_an_address_can_be_computed_by_another_program() -> None:
    # printf '\0%.0s' (16 times) and '\1\0\0\0' | b2sum -l 128
    assert next_address(bytes(16), [1]).hex() == "dd8824239837bdcdde40040d3c85c206"
