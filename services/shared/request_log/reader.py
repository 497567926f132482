"""What the request log knows: single requests, and sums over many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Engine, String, cast, func, literal, select

from services.shared.request_log.row import GenerationRow, RequestRow
from services.shared.request_log.tables import GENERATIONS, REQUESTS

_DAY_US = 86_400_000_000
MOST_FOUND = 100
_R = REQUESTS.c


class Grouping(StrEnum):
    """What sums are told by; days are those of UTC."""

    TENANT = "tenant"
    KEY = "key"
    MODEL = "model"
    DAY = "day"


_GROUPS: dict[Grouping, ColumnElement[Any]] = {
    Grouping.TENANT: _R.tenant,
    Grouping.KEY: _R.key_id,
    Grouping.MODEL: _R.model,
    Grouping.DAY: cast(_R.began_us // literal(_DAY_US), String),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageSum:
    """Requests of one group, model and outcome together.

    Args:
        group: value of what they are grouped by; of days, the number of days since 1970. None:
            requests that have none.
        prompt_tokens: those that were found cached included.
    """

    group: str | None
    model: str | None
    outcome: str
    requests: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class RequestReader:
    """Reads an open database. Each method raises one of `drop.FAULTS`.

    Args:
        engine: see `database.open_for_reading`.
        tenant: whose rows alone are seen; None sees all.
    """

    def __init__(self, engine: Engine, tenant: str | None = None) -> None:
        self._engine = engine
        self._seen = () if tenant is None else (_R.tenant == tenant,)

    def find(self, request_id: str) -> list[RequestRow]:
        """The newest first, for callers may use a request ID again; at most MOST_FOUND."""
        named = select(REQUESTS).where(_R.request_id == request_id, *self._seen)
        with self._engine.connect() as connection:
            found = connection.execute(
                named.order_by(_R.began_us.desc(), _R.entry_id.desc()).limit(MOST_FOUND)
            ).all()
            names = [row.entry_id for row in found]
            of_them = select(GENERATIONS).where(GENERATIONS.c.entry_id.in_(names))
            told = connection.execute(of_them.order_by(GENERATIONS.c.choice)).all()
        return [_request(row, told) for row in found]

    def usage(self, by: Grouping, since_us: int = 0) -> list[UsageSum]:
        """Sums of requests that began since then (microseconds since 1970), in no order."""
        group = _GROUPS[by].label("group")
        cached = (
            _R.cached_device_tokens
            + _R.cached_host_tokens
            + _R.cached_peer_tokens
            + _R.cached_service_tokens
        )
        sums = (_R.prompt_tokens, cached, _R.completion_tokens)
        query = (
            select(group, _R.model, _R.outcome, func.count(), *map(func.sum, sums))
            .where(_R.began_us >= since_us, *self._seen)
            .group_by(group, _R.model, _R.outcome)
        )
        with self._engine.connect() as connection:
            return [_sum(row) for row in connection.execute(query)]

    def close(self) -> None:
        self._engine.dispose()


def _sum(row: Any) -> UsageSum:
    group, model, outcome, requests, prompt, cached, completion = row
    return UsageSum(
        group=group,
        model=model,
        outcome=outcome,
        requests=requests,
        prompt_tokens=int(prompt),
        cached_tokens=int(cached),
        completion_tokens=int(completion),
    )


def _request(row: Any, generations: Sequence[Any]) -> RequestRow:
    own = tuple(_generation(one) for one in generations if one.entry_id == row.entry_id)
    return RequestRow(**row._mapping, generations=own)  # noqa: SLF001  its public name


def _generation(row: Any) -> GenerationRow:
    told = dict(row._mapping)  # noqa: SLF001  its public name
    del told["entry_id"]
    return GenerationRow(**told)
