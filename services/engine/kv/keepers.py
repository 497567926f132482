"""Several keepers where the scheduler has one."""

from __future__ import annotations

from services.engine.scheduler import Keeper
from services.engine.sequence import Sequence


class Keepers:
    """Tells each keeper, in order."""

    def __init__(self, *keepers: Keeper) -> None:
        self._keepers = keepers

    def filled(self, sequence: Sequence, indices: range) -> None:
        for keeper in self._keepers:
            keeper.filled(sequence, indices)

    def placed(self, sequence: Sequence, found: int) -> None:
        for keeper in self._keepers:
            keeper.placed(sequence, found)
