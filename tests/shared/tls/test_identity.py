"""Whom a certificate's URI names."""

from __future__ import annotations

import pytest

from services.shared.tls.identity import Identity, Role


@pytest.mark.parametrize("role", Role)
def test_a_uri_names_who_it_was_made_for(role: Role) -> None:
    identity = Identity(role, "engine-0.rack_1")
    assert Identity.parse(identity.uri) == identity


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "spiffe://tokenway/engine",
        "spiffe://tokenway/engine/",
        "spiffe://tokenway/root/x",
        "spiffe://elsewhere/engine/x",
        "spiffe://tokenway/engine/x/admin",
        "spiffe://tokenway/engine/X",
        "spiffe://tokenway/engine/x\n",
        "xspiffe://tokenway/engine/x",
    ],
)
def test_other_uris_name_nobody(uri: str) -> None:
    assert Identity.parse(uri) is None
