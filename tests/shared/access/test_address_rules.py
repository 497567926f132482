"""Where callers come from, and whose word on it counts."""

from __future__ import annotations

import pytest

from services.shared.access.address_rules import AddressRules, networks_of, peer_of


def rules(*allowed: str, proxies: tuple[str, ...] = ()) -> AddressRules:
    return AddressRules(networks_of("allowed", allowed), networks_of("proxies", proxies))


@pytest.mark.parametrize(
    ("allowed", "address", "is_allowed"),
    [
        ((), "203.0.113.7", True),
        ((), "nonsense", True),
        (("10.0.0.0/8",), "10.1.2.3", True),
        (("10.0.0.0/8",), "11.1.2.3", False),
        (("10.0.0.0/8", "::1"), "::1", True),
        (("10.0.0.0/8",), "::ffff:10.1.2.3", True),
        (("fe80::/10",), "fe80::1%eth0", True),
        (("10.0.0.0/8",), "nonsense", False),
        (("0.0.0.0/0",), "unknown", False),
        (("0.0.0.0/0",), "", False),
    ],
)
def test_an_address_is_allowed_by_its_network(
    allowed: tuple[str, ...], address: str, is_allowed: bool
) -> None:
    assert rules(*allowed).allows(address) is is_allowed


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.7", (), "203.0.113.7"),
        ("203.0.113.7", ("10.9.9.9",), "203.0.113.7"),
        ("10.0.0.1", (), "10.0.0.1"),
        ("10.0.0.1", ("198.51.100.2",), "198.51.100.2"),
        ("10.0.0.1", ("1.1.1.1, 198.51.100.2",), "198.51.100.2"),
        ("10.0.0.1", ("1.1.1.1, 198.51.100.2, 10.0.0.2",), "198.51.100.2"),
        ("10.0.0.1", ("1.1.1.1", "198.51.100.2", "10.0.0.2"), "198.51.100.2"),
        ("::ffff:10.0.0.1", ("2001:db8::1",), "2001:db8::1"),
        ("10.0.0.1", ("10.0.0.3, 10.0.0.2",), "10.0.0.3"),
        ("10.0.0.1", ("198.51.100.2, nonsense",), "unknown"),
        ("10.0.0.1", ("198.51.100.2,",), "unknown"),
        ("unix:/x", ("198.51.100.2",), "unix:/x"),
    ],
)
def test_only_a_trusted_proxys_word_counts(
    peer: str, forwarded: tuple[str, ...], address: str
) -> None:
    assert rules(proxies=("10.0.0.0/24",)).address(peer, forwarded) == address


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:1.2.3.4:567", "1.2.3.4"),
        ("ipv6:%5B::1%5D:567", "::1"),
        ("ipv6:[fe80::1%25eth0]:567", "fe80::1%eth0"),
        ("unix:/x", "unix:/x"),
    ],
)
def test_grpc_names_peers_its_own_way(peer: str, address: str) -> None:
    assert peer_of(peer) == address


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0", "", "example.org"])
def test_what_is_no_network_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="allowed must be networks"):
        rules(text)
