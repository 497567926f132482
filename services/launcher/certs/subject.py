"""Whom a certificate is made for: checked before anything is signed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from cryptography import x509

from services.shared.tls.identity import Identity, Role, server_names

LOOPBACK = ("localhost", "127.0.0.1", "::1")
OWN_DOMAIN = ".tokenway"

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subject:
    """An identity, and where its holder can be reached beside this machine.

    Args:
        identity: role and name.
        hosts: DNS names and addresses.

    Raises:
        ValueError: a name or a host that cannot be, or hosts of one who only calls.
    """

    identity: Identity
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if Identity.parse(self.identity.uri) is None:
            raise ValueError(
                "name must be 1 to 63 of a to z, 0 to 9, '.', '_' and '-', a letter or a digit "
                f"first, got {self.identity.name!r}"
            )
        if self.hosts and not self.serves:
            raise ValueError(f"host must not be given: one of role {self.identity.role} only calls")
        for host in self.hosts:
            if host.lower().endswith(OWN_DOMAIN):
                raise ValueError(f"host must not end with {OWN_DOMAIN}, as roles do, got {host!r}")
            if _address(host) is None and _HOST.fullmatch(host) is None:
                raise ValueError(f"host must be a DNS name or an address, got {host!r}")

    @property
    def serves(self) -> bool:
        """Whether clients come to it, too."""
        return bool(server_names(self.identity.role))

    @property
    def names(self) -> x509.SubjectAlternativeName:
        """The URI by which services know it, and by which names clients may know it."""
        uri = x509.UniformResourceIdentifier(self.identity.uri)
        own = server_names(self.identity.role)
        hosts = dict.fromkeys((*own, *LOOPBACK, *self.hosts)) if own else {}
        return x509.SubjectAlternativeName([uri, *map(_general, hosts)])


def subject(role: str, name: str, hosts: tuple[str, ...] = ()) -> Subject:
    """Raises ValueError."""
    if role not in set(Role):
        raise ValueError(f"role must be one of {', '.join(Role)}, got {role!r}")
    return Subject(Identity(Role(role), name), hosts)


def _general(host: str) -> x509.GeneralName:
    address = _address(host)
    return x509.DNSName(host) if address is None else x509.IPAddress(address)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
