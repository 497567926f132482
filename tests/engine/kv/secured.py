"""Credentials of both ends for connections between engines: each shows that it is one of us."""

from __future__ import annotations

from pathlib import Path

import grpc

from services.engine.kv.cache_settings import PeerSettings
from tests.certificates import Authority
from tests.engine.kv.lender import RULES, Door


def server_credentials(authority: Authority, name: str = "lender") -> grpc.ServerCredentials:
    """Refuses whoever cannot show a certificate of this authority."""
    identity = authority.issue(name)
    return grpc.ssl_server_credentials(
        [(identity.key_file.read_bytes(), identity.cert_file.read_bytes())],
        root_certificates=authority.ca_file.read_bytes(),
        require_client_auth=True,
    )


def client_credentials(authority: Authority, name: str = "borrower") -> grpc.ChannelCredentials:
    identity = authority.issue(name)
    return grpc.ssl_channel_credentials(
        authority.ca_file.read_bytes(),
        identity.key_file.read_bytes(),
        identity.cert_file.read_bytes(),
    )


def secured(folder: Path, rules: PeerSettings = RULES) -> Door:
    """A lender's door with mutual TLS, and the key to it."""
    authority = Authority(folder)
    return Door(
        rules=rules, server=server_credentials(authority), client=client_credentials(authority)
    )
