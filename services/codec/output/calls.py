"""The tool calls of one output as they are told: name first, arguments as they come."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.codec.events import ToolArguments, ToolEnd, ToolEvent, ToolStart
from services.codec.output.json_prefix import JsonPrefix


def new_call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Callables:
    """What may be called, and what a call is told with.

    Args:
        schemas: the parameters of each tool, by its name.
        parallel: whether more than one call is wanted.
        new_id: makes the ID of a call.
    """

    schemas: Mapping[str, Mapping[str, Any]]
    parallel: bool = True
    choice: int = 0
    new_id: Callable[[], str] = field(default=new_call_id)


class Calls:
    """Tells calls. Fragments of arguments go out only as far as they are a prefix of JSON.

    `complete` counts the calls that were written to their end; `is_cut` tells that the output broke
    off in one.
    """

    def __init__(
        self,
        callables: Callables,
        tell: Callable[[ToolEvent], None],
        spelled: Callable[[str], str],
    ) -> None:
        self._callables = callables
        self._tell = tell
        self.spelled = spelled
        self._started = 0
        self._arguments = JsonPrefix()
        self._texts: list[str] = []
        self.name: str | None = None
        self.complete = 0
        self.is_cut = False

    @property
    def is_open(self) -> bool:
        return self.name is not None

    @property
    def is_enough(self) -> bool:
        """Whether no further call is wanted."""
        return self.complete > 0 and not self._callables.parallel

    @property
    def schema(self) -> Mapping[str, Any]:
        """The parameters of the tool that is being called."""
        return self._callables.schemas.get(self.name or "", {})

    def begin(self, name: str) -> bool:
        """Tells the start of a call; False for an unknown tool, or inside another call."""
        if self.is_open or name not in self._callables.schemas:
            return False
        self.name = name
        self._arguments = JsonPrefix()
        self._texts = []
        call_id = self._callables.new_id()
        choice = self._callables.choice
        self._tell(ToolStart(index=self._started, call_id=call_id, name=name, choice=choice))
        self._started += 1
        return True

    def push(self, text: str) -> int:
        """How many characters were taken as arguments; see `JsonPrefix`."""
        taken = self._arguments.push(text)
        if taken:
            self._fragment(text[:taken])
        return taken

    @property
    def is_complete(self) -> bool:
        return self._arguments.is_complete

    @property
    def is_broken(self) -> bool:
        return self._arguments.is_broken

    def spoil(self, text: str) -> None:
        """Arguments that are no JSON: they belong to the call, but no fragment tells them."""
        self._texts.append(self.spelled(text))

    def end(self, *, is_cut: bool = False) -> None:
        """Tells the end; a call without arguments has an empty object."""
        if not self._texts and not is_cut:
            self._arguments.push("{}")
            self._fragment("{}")
        valid = self._arguments.is_complete and not self._arguments.is_broken
        self._tell(
            ToolEnd(
                index=self._started - 1,
                arguments="".join(self._texts),
                valid=valid,
                choice=self._callables.choice,
            )
        )
        self.name = None
        self.is_cut = is_cut
        self.complete += not is_cut

    def _fragment(self, text: str) -> None:
        spelled = self.spelled(text)
        self._texts.append(spelled)
        choice = self._callables.choice
        self._tell(ToolArguments(index=self._started - 1, fragment=spelled, choice=choice))
