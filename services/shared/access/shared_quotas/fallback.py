"""What counts while the store of shared quotas does not answer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from services.shared.access.quota import Quota, Reservation
from services.shared.access.quota_settings import OnFailure, QuotaSettings
from services.shared.errors import ServiceError, Unavailable

RETRY_AFTER_S = 1.0


class Fallback(Protocol):
    """Decides for a tenant with limits, by what this process knows alone.

    Attributes:
        divided_by: how many processes have the limits together.
        words: for the log.
    """

    @property
    def divided_by(self) -> int: ...
    @property
    def words(self) -> str: ...

    def refusal(self, quota: Quota) -> ServiceError | None: ...
    def enter(self, quota: Quota) -> None: ...
    def reserve(
        self, quota: Quota, tokens: int, generations: int
    ) -> AbstractContextManager[Reservation]: ...


class OwnBuckets:
    """Each process has its part of the limits."""

    def __init__(self, processes: int) -> None:
        self.divided_by = processes
        self.words = f"this process alone counts, and grants 1/{processes} of each limit"

    def refusal(self, quota: Quota) -> ServiceError | None:
        return quota.refusal()

    def enter(self, quota: Quota) -> None:
        quota.enter()

    def reserve(
        self, quota: Quota, tokens: int, generations: int
    ) -> AbstractContextManager[Reservation]:
        return quota.reserve(tokens, generations)


class NoLimits:
    """Everybody is answered; what is used is counted."""

    divided_by = 1
    words = "NOBODY IS LIMITED"

    def refusal(self, _quota: Quota) -> ServiceError | None:
        return None

    def enter(self, _quota: Quota) -> None:
        return

    def reserve(
        self, quota: Quota, tokens: int, generations: int
    ) -> AbstractContextManager[Reservation]:
        return quota.hold(tokens, generations)


class NoAnswers:
    """Who has limits is asked to come again."""

    divided_by = 1
    words = "requests of tenants with limits are refused"

    def refusal(self, _quota: Quota) -> ServiceError | None:
        return Unavailable("limits cannot be checked now, try again", retry_after_s=RETRY_AFTER_S)

    def enter(self, quota: Quota) -> None:
        self._refuse(quota)

    def reserve(
        self, quota: Quota, tokens: int, generations: int
    ) -> AbstractContextManager[Reservation]:
        self._refuse(quota)
        return quota.hold(tokens, generations)

    def _refuse(self, quota: Quota) -> None:
        refusal = self.refusal(quota)
        if refusal is not None:
            raise refusal


def fallback_of(settings: QuotaSettings) -> Fallback:
    match settings.on_failure:
        case OnFailure.LOCAL:
            return OwnBuckets(settings.processes)
        case OnFailure.ALLOW:
            return NoLimits()
        case OnFailure.REFUSE:
            return NoAnswers()
