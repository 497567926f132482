"""KvService: blocks of this engine for others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from tokenway.kv.v1 import kv_pb2 as pb
from tokenway.kv.v1 import kv_pb2_grpc as rpc

from services.engine.kv.lending import Lending
from services.engine.kv.loan_wire import (
    fetch_from,
    fetch_responses,
    lookup_from,
    lookup_response,
    release_from,
)
from services.shared.bug_boundary import trace_of
from services.shared.span_names import Attribute
from services.shared.telemetry import span

if TYPE_CHECKING:
    from typing import Any

    import grpc

    Context = grpc.aio.ServicerContext[Any, Any]


class KvServicer(rpc.KvServiceServicer):
    def __init__(self, lending: Lending) -> None:
        self._lending = lending

    async def Lookup(self, request: pb.LookupRequest, context: Context) -> pb.LookupResponse:
        lookup = lookup_from(request)
        figures: dict[str, Attribute] = {"wanted_blocks": len(lookup.chain.addresses)}
        with span("kv.lend", trace_of(context), figures):
            found = await self._lending.lookup(lookup)
            figures["found_blocks"] = found.blocks
        return lookup_response(found, self._lending.incarnation)

    async def Fetch(
        self, request: pb.FetchRequest, context: Context
    ) -> AsyncIterator[pb.FetchResponse]:
        fetch = fetch_from(request)
        figures: dict[str, Attribute] = {"wanted_blocks": len(fetch.chain.addresses)}
        lent = 0
        with span("kv.lend", trace_of(context), figures):
            try:
                async with aclosing(self._lending.fetch(fetch)) as portions:
                    async for blocks in portions:
                        lent += len(blocks)
                        for response in fetch_responses(blocks, self._lending.incarnation):
                            yield response
            finally:
                figures["found_blocks"] = lent

    async def Release(self, request: pb.ReleaseRequest, context: Context) -> pb.ReleaseResponse:
        return pb.ReleaseResponse(held=self._lending.release(release_from(request)))
