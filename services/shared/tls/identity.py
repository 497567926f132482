"""Who a certificate names: what a process is for, and which one it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

SCHEME = "spiffe://tokenway/"

_FORM = re.compile(r"spiffe://tokenway/([a-z]+)/([a-z0-9][a-z0-9._-]{0,62})")


class Role(StrEnum):
    """What the holder of a certificate may do; an administrator may operate all services."""

    CODEC = "codec"
    ROUTER = "router"
    ENGINE = "engine"
    ADMIN = "admin"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Identity:
    """A subject in the form of SPIFFE: a URI among a certificate's alternative names.

    Source: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md.
    """

    role: Role
    name: str

    @property
    def uri(self) -> str:
        return f"{SCHEME}{self.role}/{self.name}"

    @classmethod
    def parse(cls, uri: str) -> Identity | None:
        """None for what names nobody of ours."""
        match = _FORM.fullmatch(uri)
        if match is None or match[1] not in set(Role):
            return None
        return cls(Role(match[1]), match[2])


def server_name(role: Role) -> str:
    """The DNS name by which a client knows a server of that role, wherever it listens."""
    return f"{role}.tokenway"


STREAM_NAME = "stream.tokenway"
"""Names routers and engines alike, for who is content with either."""


def server_names(role: Role) -> tuple[str, ...]:
    """The DNS names that a certificate of the role carries; those who only call have none."""
    match role:
        case Role.ENGINE | Role.ROUTER:
            return server_name(role), STREAM_NAME
        case Role.CODEC:
            return (server_name(role),)
        case Role.ADMIN | Role.CLIENT:
            return ()
