"""Which versions of a model serve beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.router.replica_spec import MAX_WEIGHT
from services.router.status import Identity
from services.shared.bounds import within


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionShare:
    """A version that may serve: `fingerprint=weight`, or a mapping of these fields.

    Args:
        fingerprint: of configuration and weights, or how it begins.
        weight: its share of new generations against the other versions'; 0 takes nothing new.
    """

    fingerprint: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.fingerprint:
            raise ValueError("fingerprint must not be empty")
        within("weight", self.weight, 0, MAX_WEIGHT)

    @classmethod
    def parse(cls, text: str) -> VersionShare:
        """Raises ValueError when `text` is not `fingerprint=weight`."""
        fingerprint, equals, weight = text.partition("=")
        try:
            number = float(weight) if equals else 1.0
        except ValueError as error:
            raise ValueError(f"weight must be a number, got {weight}") from error
        return cls(fingerprint=fingerprint, weight=number)


class Versions:
    """Says which replicas stand for each other, and the shares of their versions.

    Args:
        shares: the versions that serve; with none, all replicas have that of the fleet.
    """

    def __init__(self, shares: Sequence[VersionShare] = ()) -> None:
        self._shares = shares
        self.names = [share.fingerprint for share in shares]

    def may_lead(self, identity: Identity) -> bool:
        """Whether a fleet may stand for it."""
        return not self._shares or self.share(identity.version) is not None

    def may_join(self, identity: Identity, fleet: Identity) -> bool:
        """Whether a replica may take what the fleet is asked for."""
        alike = (identity.model, identity.tokenizer_fingerprint) == (
            fleet.model,
            fleet.tokenizer_fingerprint,
        )
        if self._shares:
            return alike and self.share(identity.version) is not None
        return alike and identity.version == fleet.version

    def takes_new(self, version: str | None) -> bool:
        """Whether it has a share of new generations at all."""
        share = None if version is None else self.share(version)
        return share is None or share.weight > 0

    def share(self, version: str) -> VersionShare | None:
        """The longest fingerprint that begins like the version's."""
        fitting = [one for one in self._shares if version.startswith(one.fingerprint)]
        return max(fitting, key=lambda one: len(one.fingerprint), default=None)
