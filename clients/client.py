"""One client: where it comes from, how it is started, and what it can be asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clients.installation import Npm, Pypi


class Backend(StrEnum):
    """What answers a client."""

    MODEL = "model"
    SIMULATED = "simulated"
    SCRIPTED = "scripted"


class Protocol(StrEnum):
    """A public protocol by the path that its clients ask."""

    CHAT = "/v1/chat/completions"
    MESSAGES = "/v1/messages"
    RESPONSES = "/v1/responses"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of the client's own tools, which shows it the file or text with the secret.

    `{file}` in the value of its argument stands for the file's path.
    """

    tool: str
    argument: str
    value: str


LOOK_UP = Call("look_up", "key", "colour")
"""The tool that the scripts have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """A client.

    Args:
        name: stands in the table.
        settings: its name for `tokenway connect`.
        source: what must be installed.
        package: the one whose version is told.
        command: program, below the source's or with a path, and arguments; `{prompt}`, `{model}`,
            `{file}` and `{home}` stand for what they name.
        backend: what answers its plain question.
        call: the tool round trip; None where the client has no tools.
        environ: variables beside its settings.
    """

    name: str
    settings: str
    source: Npm | Pypi
    package: str
    protocol: Protocol
    command: tuple[str, ...]
    backend: Backend = Backend.MODEL
    call: Call | None = LOOK_UP
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return self.source.versions()[self.package]
