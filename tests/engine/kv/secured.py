"""Both ends of connections between engines: each shows that it is one of us."""

from __future__ import annotations

from pathlib import Path

from services.engine.kv.cache_settings import PeerSettings
from services.shared.tls.identity import Role, server_name
from services.shared.tls.way import Way
from tests.engine.kv.lender import RULES, Door
from tests.mesh_bed import Certified


def way_of(certified: Certified) -> Way:
    """An engine's, to engines."""
    return certified.way(Role.ENGINE, server_name(Role.ENGINE))


def secured(folder: Path, rules: PeerSettings = RULES) -> Door:
    """A lender's door with mutual TLS, and the key to it."""
    certified = Certified(folder)
    return Door(rules=rules, server=certified.server(Role.ENGINE), way=way_of(certified))
