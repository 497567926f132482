"""What the clients of a drill saw, in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from services.launcher.drill_client import Seen, Verdict

MAX_REASONS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Both sequences have one entry for each client.

    Attributes:
        fault: what was done to whom.
        undisturbed: each client's answer before.
        disturbed: all its answers while the fault came and went.
        back_s: from the beginning of the fault until the replica was ready; None: not in time.
    """

    fault: str
    undisturbed: Sequence[Seen]
    disturbed: Sequence[Sequence[Seen]]
    back_s: float | None

    @property
    def status(self) -> int:
        """The exit status: 1 when a client saw a wrong token or the replica did not come back."""
        return 1 if self._verdicts[Verdict.WRONG] or self.back_s is None else 0

    def lines(self) -> list[str]:
        seen = [one for answers in self.disturbed for one in answers]
        counts = ", ".join(f"{self._verdicts[verdict]} {verdict}" for verdict in Verdict)
        reasons = Counter(one.failure for one in seen if one.failure is not None)
        back = "not in time" if self.back_s is None else f"after {self.back_s:.1f} s"
        return [
            f"fault     {self.fault}",
            f"requests  {len(seen)} of {len(self.disturbed)} clients: {counts}",
            *(f"          {count} {reason}" for reason, count in reasons.most_common(MAX_REASONS)),
            f"gap       longest {_longest_ms(seen)} ms without a token, "
            f"undisturbed {_longest_ms(self.undisturbed)} ms",
            f"back      {back}",
        ]

    @property
    def _verdicts(self) -> Counter[Verdict]:
        pairs = zip(self.undisturbed, self.disturbed, strict=True)
        return Counter(one.verdict(right) for right, answers in pairs for one in answers)


def _longest_ms(seen: Sequence[Seen]) -> int:
    return round(1000 * max((one.longest_gap_s for one in seen), default=0.0))
