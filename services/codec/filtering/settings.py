"""Settings of the content filter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.shared.bounds import within


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentFilterSettings:
    """Which filter looks at prompts and answers.

    Args:
        name: of an entry point; None: none does.
        file: what the filter is told; changes are followed.
        timeout_s: seconds that it may take for a prompt, or for a piece of an answer.
    """

    name: str | None = None
    file: Path | None = None
    timeout_s: float = 5.0

    def __post_init__(self) -> None:
        within("timeout_s", self.timeout_s, 0.001, 600)
        if self.file is not None and self.name is None:
            raise ValueError("name must be set where file is")
