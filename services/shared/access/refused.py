"""What was shown and is not taken."""

from __future__ import annotations


class Refused(Exception):
    """Why, in words for the log alone: callers are told the same in each case.

    Args:
        cause: one of a few, for example `unknown key`.
        key_id: of the key, where it is one of ours.
    """

    def __init__(self, cause: str, key_id: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.key_id = key_id
