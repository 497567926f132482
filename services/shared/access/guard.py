"""Lets callers in by what they show, or tells them nothing but that it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from services.shared.access.address_rules import AddressRules
from services.shared.access.api_key import PREFIX
from services.shared.access.caller import ANYBODY, Caller
from services.shared.access.denials import Denials, Why
from services.shared.access.refused import Refused
from services.shared.access.shown import Shown
from services.shared.errors import PermissionDenied, ServiceError, Unauthenticated

NO_KEY = "an API key must be sent, as `Authorization: Bearer KEY` or as `x-api-key: KEY`"
WRONG_KEY = "the API key is not valid"
WRONG_PLACE = "requests from this address are not permitted"
NOTHING_SHOWN = "no key"


class Keys(Protocol):
    def caller(self, text: str, now: datetime) -> Caller:
        """Raises Refused."""


class Tokens(Protocol):
    def caller(self, token: str) -> Caller:
        """Raises Refused."""


@dataclass(frozen=True, slots=True)
class Denial:
    """An error to be told, under the name by which the log knows it."""

    error: ServiceError
    request_id: str


class Guard:
    """Decides for each request alone.

    Args:
        keys: API keys now; None where there are none.
        tokens: takes signed tokens; None where none count.
        addresses: where callers may come from.
        denials: hears of who is refused and why.
    """

    def __init__(
        self,
        keys: Callable[[], Keys] | None,
        tokens: Tokens | None,
        addresses: AddressRules,
        denials: Denials,
    ) -> None:
        self._keys = keys
        self._tokens = tokens
        self._addresses = addresses
        self._denials = denials
        self.is_open = keys is None and tokens is None

    def found(self, shown: Shown) -> Caller | Refused:
        """Whom a key or token is of, wherever the request came from."""
        if self.is_open:
            return ANYBODY
        try:
            return self._caller(shown.credential())
        except Refused as refused:
            return refused

    def admit(self, found: Caller | Refused, shown: Shown, peer: str) -> Caller | Denial:
        """Whom to answer, or what to tell instead.

        Who comes from a wrong place learns nothing of keys. All wrong keys get the same words.

        Args:
            found: what `found` said of the same request.
            shown: what the request showed.
            peer: the address of the other end.
        """
        address = self._addresses.address(peer, shown.forwarded)
        if not self._addresses.allows(address):
            why = Why(address=address, cause="address")
            return Denial(PermissionDenied(WRONG_PLACE), self._denials.note(why))
        if isinstance(found, Caller):
            return found
        why = Why(address=address, cause=found.cause, key_id=found.key_id)
        text = NO_KEY if found.cause == NOTHING_SHOWN else WRONG_KEY
        return Denial(Unauthenticated(text), self._denials.note(why))

    def _caller(self, credential: str | None) -> Caller:
        if credential is None:
            raise Refused(NOTHING_SHOWN)
        if self._tokens is not None and not credential.startswith(PREFIX):
            return self._tokens.caller(credential)
        if self._keys is None:
            raise Refused("no key of ours")
        return self._keys().caller(credential, datetime.now(UTC))
