"""Fragments of one record as they come from the nodes."""

from __future__ import annotations

from collections import defaultdict

from services.engine.kv.record import Payload
from services.engine.kv.store import StoreFailed, StoreTimeout
from services.engine.kv.stores.fragment import BadFragment, Fragment, Stripe, opened_fragment


class StripeReading:
    """Sorts what the nodes answer by the write that it belongs to.

    Args:
        address: of the record.
        layout: its digest.
        data: fragments that make a record.
        nodes: how many there are.

    Attributes:
        failures: by node.
        absent: nodes that have no fragment.
        damaged: nodes whose fragment does not fit.
    """

    def __init__(self, address: bytes, layout: bytes, data: int, nodes: int) -> None:
        self.failures: dict[int, StoreFailed] = {}
        self.absent: set[int] = set()
        self.damaged: set[int] = set()
        self._address = address
        self._layout = layout
        self._data = data
        self._nodes = nodes
        self._stripes: defaultdict[Stripe, dict[int, Fragment]] = defaultdict(dict)

    def add(self, node: int, answer: Payload | StoreFailed | None) -> None:
        if isinstance(answer, StoreFailed):
            self.failures[node] = answer
        elif answer is None:
            self.absent.add(node)
        else:
            self._add_fragment(node, answer)

    def whole(self) -> tuple[Stripe, list[Fragment]] | None:
        """The fragments of a write of which there are enough."""
        for stripe, fragments in self._stripes.items():
            if len(fragments) >= self._data:
                return stripe, list(fragments.values())
        return None

    def others(self, stripe: Stripe) -> set[int]:
        """Nodes that answered, and have no fragment of that write."""
        rest = (fragments for other, fragments in self._stripes.items() if other != stripe)
        return self.absent | self.damaged | {node for fragments in rest for node in fragments}

    @property
    def found(self) -> bool:
        return bool(self._stripes or self.damaged)

    def failure(self) -> StoreFailed | None:
        """Why a record that may be there cannot be read; None where no node fails."""
        if not self.failures:
            return None
        causes = list(self.failures.values())
        text = f"{len(causes)} of {self._nodes} nodes fail: {causes[0]}"
        late = all(isinstance(cause, StoreTimeout) for cause in causes)
        return StoreTimeout(text) if late else StoreFailed(text)

    def _add_fragment(self, node: int, answer: Payload) -> None:
        try:
            fragment = opened_fragment(answer, self._address, self._layout)
        except BadFragment:
            self.damaged.add(node)
            return
        if fragment.index != node:
            self.damaged.add(node)
        else:
            self._stripes[fragment.stripe][node] = fragment
