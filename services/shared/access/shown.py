"""What a request shows of who asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.shared.access.refused import Refused

_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Shown:
    """Headers that tell who asks, in their order; values as they came, nothing of them trusted."""

    authorization: tuple[str, ...] = ()
    api_key: tuple[str, ...] = ()
    forwarded: tuple[str, ...] = ()

    @classmethod
    def of(cls, headers: Iterable[tuple[str | bytes, str | bytes]]) -> Shown:
        """Args: headers: names, in small letters, and values of HTTP or of gRPC's metadata."""
        found: dict[str, list[str]] = {"authorization": [], "x-api-key": [], "x-forwarded-for": []}
        for name, value in headers:
            values = found.get(_text(name))
            if values is not None:
                values.append(_text(value))
        return cls(*map(tuple, found.values()))

    def credential(self) -> str | None:
        """The key or token; None where none is shown.

        A bearer goes before `x-api-key`; other schemes of `authorization` are for others.

        Raises:
            Refused: one header is there with two values, of which others might read the other.
        """
        bearers = {text[len(_BEARER) :].strip() for text in self.authorization if _is_bearer(text)}
        keys = {text.strip() for text in self.api_key}
        if max(len(self.authorization), len(bearers), len(keys)) > 1:
            raise Refused("two keys in one request")
        return next((text for text in (*bearers, *keys) if text), None)


def _is_bearer(text: str) -> bool:
    return text[: len(_BEARER)].lower() == _BEARER


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
