"""The engine with a door that sends a message for each token, as systems without sessions do.

The engine's own door merges the tokens that a slow reader has not taken yet.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

from tokenway.stream.v1 import stream_pb2 as pb

from services.engine import __main__ as engine
from services.shared.stream.servicer import TokenStreamServicer


class TokenCallsServicer(TokenStreamServicer):
    """One message, one token."""

    async def Generate(  # noqa: N802  # the contract's name
        self, request: pb.GenerateRequest, context: Any
    ) -> AsyncIterator[pb.GenerateResponse]:
        async for response in super().Generate(request, context):
            if not response.HasField("tokens"):
                yield response
            for position, token_id in enumerate(
                response.tokens.token_ids, response.tokens.first_position
            ):
                tokens = pb.Tokens(first_position=position, token_ids=[token_id])
                yield pb.GenerateResponse(tokens=tokens)


if __name__ == "__main__":
    vars(engine)["TokenStreamServicer"] = TokenCallsServicer
    sys.exit(engine.main())
