"""Settings of how replicas are compared and shared out."""

from __future__ import annotations

from dataclasses import dataclass

from services.router.balancing.affinity import Affinity
from services.router.balancing.policies import (
    LeastTokens,
    Policy,
    PolicyName,
    PowerOfTwo,
    RoundRobin,
    Weighted,
)
from services.router.balancing.versions import VersionShare
from services.shared.bounds import within

MAX_PROMPT_TOKENS = 2**24


@dataclass(frozen=True, kw_only=True, slots=True)
class BalancingSettings:
    """Which replica is the best, which versions there are, and which prompts are long.

    Where `versions` are named, replicas of these serve beside each other and share new generations;
    without them all have the version of the first replica. Prompts of `long_prompt_tokens` and more
    wait apart and may have replicas of their own.
    """

    policy: PolicyName = PolicyName.AFFINITY
    versions: tuple[VersionShare, ...] = ()
    long_prompt_tokens: int = 4096

    def __post_init__(self) -> None:
        names = [share.fingerprint for share in self.versions]
        if len(set(names)) < len(names):
            raise ValueError(f"versions must differ, got {', '.join(names)}")
        if names and not any(share.weight for share in self.versions):
            raise ValueError("versions must have one of a weight above 0, got none")
        within("long_prompt_tokens", self.long_prompt_tokens, 1, MAX_PROMPT_TOKENS)

    def comparison(self, salt: bytes) -> Policy:
        """The policy; `salt` makes one router's draws differ from another's."""
        if self.policy is PolicyName.POWER_OF_TWO:
            return PowerOfTwo(salt)
        plain: tuple[Policy, ...] = (Affinity(), RoundRobin(), LeastTokens(), Weighted())
        return next(policy for policy in plain if policy.name is self.policy)
