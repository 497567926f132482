"""Two ends of a TLS connection in memory, with certificates of folders."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def handshake(server: Path, client: Path, name: str) -> str:
    """The URI that the server sees of a client who wants to speak with `name`; or SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = context(server, ssl.PROTOCOL_TLS_SERVER)
    ours = context(client, ssl.PROTOCOL_TLS_CLIENT)
    accepting = theirs.wrap_bio(to_server, to_client, server_side=True)
    calling = ours.wrap_bio(to_client, to_server, server_hostname=name)
    ends, done = {calling, accepting}, set[ssl.SSLObject]()
    while done != ends:
        for end in (calling, accepting):
            try:
                end.do_handshake()
                done.add(end)
            except ssl.SSLWantReadError:
                continue
    told = accepting.getpeercert()
    assert told is not None
    return next(str(value) for kind, value in _pairs(told["subjectAltName"]) if kind == "URI")


def _pairs(names: Any) -> Iterable[tuple[str, str]]:
    """The stubs of `ssl` know not what stands there."""
    return names  # type: ignore[no-any-return]


def context(folder: Path, protocol: int) -> ssl.SSLContext:
    """Shows the certificate of `folder`, and wants one of whom it trusts."""
    made = ssl.SSLContext(protocol)
    made.load_verify_locations(folder / "ca.pem")
    made.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    made.verify_mode = ssl.CERT_REQUIRED
    return made
