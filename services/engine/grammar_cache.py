"""Compiled grammars that are kept for whoever asks again, apart by tenant."""

from __future__ import annotations

from llguidance import LLMatcher

from services.engine.eviction import EvictionOrder
from services.engine.grammar_limits import AUTOMATON_BYTES
from services.shared.stream.generation import Constraint

COMPILED_BYTES = 16 * 2**20
"""The largest grammar that is let in takes less, its source included."""

GRAMMAR_BYTES = COMPILED_BYTES + AUTOMATON_BYTES
"""What a grammar may take. What it takes by now, the library does not tell."""

Key = tuple[str, Constraint]


class GrammarCache:
    """As many grammars as fit into a memory limit when each is as large as one can become.

    Tenants find nothing of each other's: how soon an answer begins would tell one that another has
    used a schema, and outputs of one could fill the states that another's share. Half of the memory
    is kept for tenants in equal parts, as blocks are.

    Args:
        limit_bytes: less than `GRAMMAR_BYTES` keeps nothing.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._most = limit_bytes // GRAMMAR_BYTES
        self._order: EvictionOrder[Key] = EvictionOrder(self._most)
        self._kept: dict[Key, LLMatcher] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, constraint: Constraint, tenant: str) -> LLMatcher | None:
        """The tenant's grammar of this constraint, which is kept no longer."""
        grammar = self._kept.pop((tenant, constraint), None)
        if grammar is not None:
            self._order.remove((tenant, constraint))
        return grammar

    def put(self, constraint: Constraint, tenant: str, grammar: LLMatcher) -> None:
        """Keeps a grammar that is not kept, the last to give way."""
        if self._most == 0:
            return
        if len(self._kept) == self._most:
            del self._kept[self._order.take()]
        self._kept[tenant, constraint] = grammar
        self._order.add((tenant, constraint), tenant)
