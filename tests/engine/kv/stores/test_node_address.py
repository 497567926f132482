"""Where a node of a store listens."""

from __future__ import annotations

import pytest

from services.engine.kv.stores.node_address import NodeAddress, node_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("cache:6379", NodeAddress("cache", 6379)),
        (" 10.0.0.1:1 ", NodeAddress("10.0.0.1", 1)),
        ("[::1]:65535", NodeAddress("::1", 65535)),
    ],
)
def test_an_address_is_read_and_written(text: str, address: NodeAddress) -> None:
    assert node_address(text) == address
    assert str(address) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cache",
        ":6379",
        "cache:",
        "cache:x",
        "::1:6379",
        "redis://cache:6379",
        "cache:٣",
        "[]:1",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be host:port, got"):
        node_address(text)


@pytest.mark.parametrize("port", [0, 65536, 10**30])
def test_a_port_has_its_limits(port: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 65535"):
        node_address(f"cache:{port}")
