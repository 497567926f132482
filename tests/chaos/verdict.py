"""What became of a request in a chaos run."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from tests.faults.answer import Answer


class Verdict(StrEnum):
    """Only the first two are right."""

    EXACT = "exact"
    FAILED = "failed with a reason"
    WRONG = "wrong"
    UNEXPLAINED = "broken without a reason"


def judged(answer: Answer, undisturbed: Answer) -> tuple[Verdict, str]:
    """The verdict, and the reason that was told or what is wrong.

    An answer that failed must be the beginning of the right one up to its error.
    """
    if answer.complete:
        right = answer == undisturbed
        return (Verdict.EXACT, "") if right else (Verdict.WRONG, _difference(answer, undisturbed))
    begun, right_texts = answer.texts(), undisturbed.texts()
    if any(not right_texts.get(place, "").startswith(text) for place, text in begun.items()):
        return Verdict.WRONG, _difference(answer, undisturbed)
    reason = _reason(answer.told)
    return (Verdict.FAILED, reason) if reason else (Verdict.UNEXPLAINED, f"{answer.told}"[-300:])


def _reason(told: Any) -> str:
    """The message of the error that an answer ends with."""
    last = told.get("", [None])[-1] if "" in told else told
    error = last.get("error") if isinstance(last, dict) else None
    return str(error.get("message", "")) if isinstance(error, dict) else ""


def _difference(answer: Answer, undisturbed: Answer) -> str:
    """What both tell from shortly before they part."""
    told, right = str(answer.told), str(undisturbed.told)
    pairs = zip(told, right, strict=False)
    same = next((at for at, (one, other) in enumerate(pairs) if one != other), len(right))
    begin = max(0, same - 60)
    return f"...{told[begin : same + 60]}... where ...{right[begin : same + 60]}... was right"
