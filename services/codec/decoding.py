"""One output on its way from token IDs to visible text."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from services.codec.detokenizer import Detokenizer
from services.codec.request import Ending
from services.codec.stops import Pass, StopMatcher, Stopped
from services.codec.tokenizer import Tokenizer
from services.shared.digest import token_digest


class Decoding:
    """Detokenizer and stop strings, and the count of tokens up to where the text ends.

    `stop` is the stop string that ended the text. With stop strings tokens go through one by one,
    so that the count does not depend on how they came together.
    """

    def __init__(
        self, tokenizer: Tokenizer, ending: Ending, *, shown: frozenset[int] = frozenset()
    ) -> None:
        self._detokenizer = Detokenizer(tokenizer, shown=shown)
        self._matcher = StopMatcher(ending.stop) if ending.stop else None
        self._include_stop = ending.include_stop
        self._received = array("I")
        self.stop: str | None = None
        self.tokens = 0

    @property
    def digest(self) -> str:
        """Of all IDs that were received."""
        return token_digest(self._received)

    def push(self, ids: Sequence[int]) -> str:
        """Text that is visible from now on. After a stop string there is none."""
        self._received.extend(ids)
        if self._matcher is None:
            self.tokens += len(ids)
            return self._detokenizer.push(ids).text
        text = ""
        for token in ids:
            if self.stop is not None:
                break
            self.tokens += 1
            text += self._visible(self._matcher.push(self._detokenizer.push((token,)).text))
        return text

    def finish(self) -> str:
        """What was withheld; a stop string may be found at the very end."""
        text = self._detokenizer.finish().text
        if self._matcher is None:
            return text
        visible = self._visible(self._matcher.push(text))
        return visible if self.stop is not None else visible + self._visible(self._matcher.finish())

    def _visible(self, result: Pass | Stopped) -> str:
        if isinstance(result, Pass):
            return result.text
        self.stop = result.stop
        return result.text + (result.stop if self._include_stop else "")
