"""Which role may call which method of which service; what is not named is for administrators."""

from __future__ import annotations

from collections.abc import Mapping

from services.shared.tls.identity import Role

ADMINISTRATORS = frozenset({Role.ADMIN})
OPERATORS = ADMINISTRATORS | {Role.ROUTER}
SUBMITTERS = OPERATORS | {Role.CODEC}
ENGINES = frozenset({Role.ENGINE})
EVERYBODY = frozenset(Role)

Rules = Mapping[str, frozenset[Role]]
"""Full names of methods, as in `package.Service/Method`."""


def _rules(service: str, roles: frozenset[Role], *methods: str) -> dict[str, frozenset[Role]]:
    return {f"{service}/{method}": roles for method in methods}


RULES: Rules = {
    **_rules("tokenway.stream.v1.TokenStreamService", SUBMITTERS, "Generate", "Session"),
    **_rules("tokenway.engine.v1.EngineService", SUBMITTERS, "Describe", "WatchLoad"),
    **_rules(
        "tokenway.engine.v1.EngineService",
        OPERATORS,
        *("Drain", "SetServiceCache", "FlushCache", "GetCacheStats"),
    ),
    **_rules(
        "tokenway.router.v1.RouterService",
        ADMINISTRATORS,
        *("ListReplicas", "DrainReplica", "SetWeight", "Disconnect", "Explain"),
    ),
    **_rules("tokenway.kv.v1.KvService", ENGINES, "Lookup", "Fetch", "Release"),
    **_rules("grpc.health.v1.Health", EVERYBODY, "Check", "Watch", "List"),
}
"""Of engines, and of routers towards services."""

CLIENT_METHODS = (
    "tokenway.stream.v1.TokenStreamService/Generate",
    "tokenway.stream.v1.TokenStreamService/Session",
    "tokenway.engine.v1.EngineService/Describe",
)

FOR_CLIENTS: Rules = {
    method: roles | {Role.CLIENT} if method in CLIENT_METHODS else roles
    for method, roles in RULES.items()
}
"""Of a door that clients may use, where their tenants are known by what they show."""
