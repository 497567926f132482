"""Where callers may come from."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import unquote

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def networks_of(key: str, texts: Sequence[str]) -> tuple[Network, ...]:
    """Networks, or single addresses. Raises ValueError naming `key` and the one that is none."""
    try:
        return tuple(ip_network(text) for text in texts)
    except ValueError as error:
        raise ValueError(f"{key} must be networks like 10.0.0.0/8: {error}") from error


def is_in(address: str, networks: Sequence[Network]) -> bool:
    """False for what is no address."""
    known = _known(address)
    return known is not None and _in(known, networks)


class AddressRules:
    """Decides by the address of the peer, or of the one that it speaks for.

    Args:
        allowed: where callers may come from; empty, anywhere.
        proxies: peers whose word counts on whom they speak for.
    """

    def __init__(self, allowed: Sequence[Network], proxies: Sequence[Network]) -> None:
        self._allowed = allowed
        self._proxies = proxies

    def address(self, peer: str, forwarded: Sequence[str]) -> str:
        """The caller's address; `unknown` where a proxy's word on it makes no sense.

        Args:
            peer: the other end of the connection.
            forwarded: values of `x-forwarded-for`, in which each proxy writes whom it heard, last.
                What stands left of the first one that we do not trust may be anybody's invention.
        """
        if not self._proxies:
            return peer
        last = _known(peer)
        if last is None or not _in(last, self._proxies):
            return peer if last is None else str(last)
        for text in reversed([part for line in forwarded for part in line.split(",")]):
            last = _known(text.strip())
            if last is None:
                return "unknown"
            if not _in(last, self._proxies):
                break
        return str(last)

    def allows(self, address: str) -> bool:
        if not self._allowed:
            return True
        return is_in(address, self._allowed)


def peer_of(grpc_peer: str) -> str:
    """The address in gRPC's name of a peer: `ipv4:1.2.3.4:5` or `ipv6:%5B::1%5D:5`."""
    kind, _, rest = unquote(grpc_peer).partition(":")
    return rest.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else grpc_peer


def _known(text: str) -> Address | None:
    """An IPv4 address that came over IPv6 is the IPv4 address; a zone says nothing of a network."""
    try:
        known = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = known.ipv4_mapped if isinstance(known, IPv6Address) else None
    return mapped or known


def _in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)
