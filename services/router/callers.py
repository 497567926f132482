"""Who may call a router, and whose requests those are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from services.router.client_guard import ClientGuard
from services.router.security_settings import RouterSecurity
from services.shared.access.guard import Guard
from services.shared.access.opening import guarding
from services.shared.access.rpc_guard import RpcGuard
from services.shared.mesh.mesh import Mesh
from services.shared.mesh.rules import FOR_CLIENTS

if TYPE_CHECKING:
    from typing import Any

    import grpc

    Guards = Sequence[grpc.aio.ServerInterceptor[Any, Any]]


@asynccontextmanager
async def callers_of(settings: RouterSecurity, mesh: Mesh, host: str) -> AsyncIterator[Guards]:
    """What stands before a router's methods; follows the files of keys inside the block.

    Raises:
        BadConfig: a file of keys cannot be used.
    """
    shown = settings.callers
    if shown is None:
        yield _guards(mesh, None)
        return
    async with guarding(shown, host, mesh.denials) as access:
        yield _guards(mesh, access.guard)


def _guards(mesh: Mesh, guard: Guard | None) -> Guards:
    """In the clear a codec looks like any other caller: then everybody shows a key, if anybody."""
    if mesh.server is not None:
        return [*mesh.guards(FOR_CLIENTS), ClientGuard(guard)]
    return [*mesh.guards(FOR_CLIENTS), *([] if guard is None else [RpcGuard(guard)])]
