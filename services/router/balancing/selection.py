"""The replicas between which a generation has the choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from services.router.balancing.candidate import Candidate, Snapshot
from services.router.balancing.turns import Turns
from services.router.balancing.versions import Versions, VersionShare
from services.router.demand import Demand
from services.router.status import TAKING, Role
from services.shared.errors import NotFound, Unavailable

LAG = 8
"""Turns of the lightest that one is owed at most, for a time when it was away or too busy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Those that can take a generation now, none of them better than the others by its state.

    Args:
        able: none where it would have to wait.
        version: whose turn it is; None where versions have no shares or it has begun already.
        version_lag: what the version is owed at most.
        note: how many they are, and what is special about them.
    """

    able: Sequence[Candidate]
    version: VersionShare | None = None
    version_lag: float = 0.0
    note: str = ""


def select(demand: Demand, fleet: Snapshot, versions: Versions, turns: Turns) -> Selection:
    """Args: turns: those of the versions.

    Raises:
        NotFound: the fleet serves another model.
        Unavailable: no replica can take it.
    """
    if demand.model and fleet.model is not None and demand.model != fleet.model:
        raise NotFound(
            f"model {demand.model!r} is not served here, {fleet.model!r} is", field="model"
        )
    taking = [one for one in fleet.candidates if may_take(demand, one, versions)]
    if not taking:
        raise Unavailable(_why_none(demand, fleet, versions))
    general = [one for one in taking if one.role is not Role.PREFILL]
    note = "" if general else "; no replica for outputs is up"
    taking = general or taking
    pool = [one for one in taking if one.takes_lane]
    note += "" if pool else f"; no replica for {demand.lane} prompts is up"
    for status in TAKING:
        best = [one for one in pool or taking if one.status is status]
        if best:
            break
    able = [one for one in best if one.has_room]
    if not able:
        return Selection(able=())
    version, lag = None, 0.0
    if demand.version is None and (shares := _shares(able, versions)):
        version, lag = _next_version(list(shares.values()), turns)
        able = [one for one in able if shares.get(one.name) is version]
        note = f"; version {version.fingerprint} by weight {version.weight:g}{note}"
    note = f"{len(able)} {status}{note}"
    return Selection(able=able, version=version, version_lag=lag, note=note)


def may_take(demand: Demand, one: Candidate, versions: Versions) -> bool:
    """Whether a replica is one for this generation, whatever room it has."""
    if one.status not in TAKING or one.weight <= 0:
        return False
    if demand.avoid and (one.name, one.epoch) in demand.avoid:
        return False
    if demand.version is not None:
        return demand.version == one.version
    return not versions.names or versions.takes_new(one.version)


def why_not(demand: Demand, one: Candidate, versions: Versions) -> str | None:
    """Why a replica is none for this generation; None if it is one."""
    if may_take(demand, one, versions):
        return None
    if (one.name, one.epoch) in demand.avoid:
        return "failed it"
    if one.status not in TAKING:
        return one.status.value
    if demand.version is not None and demand.version != one.version:
        return "of another version"
    return "of weight 0"


def lag_of(weights: Sequence[float]) -> float:
    return LAG / min(weights)


def _next_version(shares: Sequence[VersionShare], turns: Turns) -> tuple[VersionShare, float]:
    """The one whose turn it is, and what each is owed at most."""
    lag = lag_of([share.weight for share in shares])
    starts = turns.starts((share.fingerprint for share in shares), lag)
    pairs = zip(starts, shares, strict=True)
    return min(pairs, key=lambda pair: (pair[0], pair[1].fingerprint))[1], lag


def _shares(able: Sequence[Candidate], versions: Versions) -> dict[str, VersionShare]:
    """The share of each replica's version, by the replica's name."""
    found: dict[str, VersionShare] = {}
    if not versions.names:
        return found
    for one in able:
        share = None if one.version is None else versions.share(one.version)
        if share is not None:
            found[one.name] = share
    return found


def _why_none(demand: Demand, fleet: Snapshot, versions: Versions) -> str:
    causes = Counter(str(why_not(demand, one, versions)) for one in fleet.candidates)
    states = ", ".join(f"{count} {cause}" for cause, count in sorted(causes.items()))
    return f"no replica can take the generation; of {len(fleet.candidates)}: {states}"
