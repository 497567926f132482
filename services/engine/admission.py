"""What an engine takes: generations checked against its model and made into sequences."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass

from services.engine.sequence import Sequence
from services.shared.addresses import root_address
from services.shared.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    NotFound,
    Unsupported,
)
from services.shared.stream.generation import Generation


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedModel:
    """What the admission must know of the model.

    Attributes:
        context_length: tokens that prompt and output may have together; never more than the pool.
        kv_layout_id: names the memory layout of a KV block.
    """

    name: str
    fingerprint: str
    vocabulary_size: int
    context_length: int
    end_of_text_ids: frozenset[int]
    kv_layout_id: str


class Admission:
    """Checks every number a caller gives; what it returns needs no check again.

    Args:
        timeout_ms: the longest time that a generation may take.
        shares_blocks: equal prompts of different tenants have equal blocks.
    """

    def __init__(self, model: ServedModel, timeout_ms: int, *, shares_blocks: bool = False) -> None:
        self._model = model
        self._timeout_ms = timeout_ms
        self._shares_blocks = shares_blocks
        self._keys = itertools.count()

    def admit(self, generation: Generation) -> Sequence:
        """A new sequence.

        Raises:
            ServiceError: naming field, limit and value.
        """
        self._check(generation)
        model = self._model
        now = time.monotonic_ns()
        timeout_ms = generation.quality_of_service.timeout_ms or self._timeout_ms
        seed = generation.sampling.seed
        max_tokens = generation.stopping.max_tokens
        room = model.context_length - len(generation.prompt_ids)
        return Sequence(
            key=next(self._keys),
            generation=generation,
            root=self._root(generation),
            seed=secrets.randbits(64) if seed is None else seed,
            limit=len(generation.prompt_ids)
            + (room if max_tokens is None else min(max_tokens, room)),
            arrived_ns=now,
            deadline_ns=now + min(timeout_ms, self._timeout_ms) * 1_000_000,
        )

    def _root(self, generation: Generation) -> bytes:
        tenant = "" if self._shares_blocks else generation.quality_of_service.tenant or ""
        model = self._model
        return root_address(model.fingerprint, model.kv_layout_id, generation.cache.salt, tenant)

    def _check(self, generation: Generation) -> None:
        model = self._model
        if generation.model not in {"", model.name}:
            raise NotFound(f"model must be {model.name!r}, got {generation.model!r}", field="model")
        if generation.output.prompt_logprobs is not None:
            raise Unsupported(
                "prompt_logprobs is not supported by this engine", field="output.prompt_logprobs"
            )
        self._check_ids("prompt_ids", generation.prompt_ids)
        self._check_ids("generated_ids", generation.generated_ids)
        self._check_ids("stopping.stop_token_ids", generation.stopping.stop_token_ids)
        self._check_ids(
            "sampling.logit_bias", (token_id for token_id, _ in generation.sampling.logit_bias)
        )
        self._check_length(generation)

    def _check_length(self, generation: Generation) -> None:
        limit = self._model.context_length
        if len(generation.prompt_ids) >= limit:
            raise ContextLengthExceeded(len(generation.prompt_ids), limit, field="prompt_ids")
        tokens = len(generation.prompt_ids) + len(generation.generated_ids)
        if tokens > limit:
            raise InvalidRequest(
                f"prompt_ids and generated_ids must have at most {limit} tokens, got {tokens}",
                field="generated_ids",
            )

    def _check_ids(self, field: str, token_ids: Iterable[int]) -> None:
        size = self._model.vocabulary_size
        for index, token_id in enumerate(token_ids):
            if not 0 <= token_id < size:
                raise InvalidRequest(
                    f"{field}[{index}] must be below {size}, got {token_id}",
                    field=f"{field}[{index}]",
                )
