"""The state of one generation in an engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.engine.grammar import Matcher
from services.engine.kv.tier import Tier
from services.engine.prompt_count import PromptCount
from services.shared.addresses import next_address
from services.shared.stream.events import CachedTokens, CacheMiss
from services.shared.stream.generation import Generation


@dataclass(slots=True, eq=False)
class Sequence:
    """A generation with its tokens and blocks.

    Args:
        key: names the sequence within the engine.
        root: address that the first block's chains from.
        seed: of the random numbers; the generation's own or a chosen one.
        limit: tokens that prompt and output may have together.
        arrived_ns: on the monotonic clock, as are the other times.
        tokens: prompt and output.
        computed: the first `computed` tokens have their KV in the pool.
        addresses: of the leading full blocks, as far as they are known.
        matcher: follows the output if the generation has a constraint.
        fetched: tiers that blocks of its own were fetched from, by address.
        fetch_us: until they had come; cache_miss: why the next one did not.
        cached_tokens: prompt tokens that were found when it got its place.
        given_up: tokens that were computed when it lost its place last.
        prompt: how the prompt's tokens came about.
    """

    key: int
    generation: Generation
    root: bytes
    seed: int
    limit: int
    arrived_ns: int
    deadline_ns: int
    matcher: Matcher | None = None
    tokens: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    addresses: list[bytes] = field(default_factory=list)
    published: int = 0
    computed: int = 0
    fetched: dict[bytes, Tier] = field(default_factory=dict)
    fetch_us: int = 0
    cache_miss: CacheMiss | None = None
    cached_tokens: CachedTokens = CachedTokens()
    preemptions: int = 0
    given_up: int = 0
    prompt: PromptCount = field(init=False)
    scheduled_ns: int | None = None
    first_token_ns: int | None = None

    def __post_init__(self) -> None:
        self.tokens = [*self.generation.prompt_ids, *self.generation.generated_ids]
        self.prompt = PromptCount(len(self.generation.prompt_ids))

    def append(self, token_id: int) -> None:
        """Goes on by one token; raises ValueError if the grammar refuses it."""
        if self.matcher is not None:
            self.matcher.accept(token_id)
        self.tokens.append(token_id)

    @property
    def tenant(self) -> str:
        """In whose share its cached blocks and its grammar are."""
        return self.generation.quality_of_service.tenant or ""

    @property
    def position(self) -> int:
        """Position of the next output token."""
        return len(self.tokens) - len(self.generation.prompt_ids)

    @property
    def remaining(self) -> int:
        """Tokens to compute before the next one can be drawn."""
        return len(self.tokens) - self.computed

    @property
    def output_ids(self) -> list[int]:
        return self.tokens[len(self.generation.prompt_ids) :]

    @property
    def outstanding(self) -> int:
        """Tokens still to compute and, at most, to generate."""
        return self.remaining + self.limit - len(self.tokens)

    def note_cached(self, blocks: int, block_size: int) -> None:
        """Its first `blocks` blocks were found: counts the prompt's tokens by where they were."""
        left, counts = len(self.generation.prompt_ids), dict.fromkeys(Tier, 0)
        for address in self.full_addresses(block_size)[:blocks]:
            tokens = min(block_size, left)
            counts[self.fetched.get(address, Tier.DEVICE)] += tokens
            left -= tokens
        self.cached_tokens = CachedTokens(**counts)

    def usable_addresses(self, block_size: int) -> list[bytes]:
        """Addresses of the full blocks of all tokens but the last: it is computed to draw from."""
        return self.full_addresses(block_size)[: (len(self.tokens) - 1) // block_size]

    def full_addresses(self, block_size: int) -> list[bytes]:
        """Addresses of the full blocks of all tokens."""
        for index in range(len(self.addresses), len(self.tokens) // block_size):
            parent = self.addresses[-1] if self.addresses else self.root
            ids = self.tokens[index * block_size : (index + 1) * block_size]
            self.addresses.append(next_address(parent, ids))
        return self.addresses
