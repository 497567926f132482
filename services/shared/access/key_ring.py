"""API keys as they are looked up."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from datetime import datetime

from services.shared.access.api_key import MAX_CHARACTERS, PREFIX, digest_of
from services.shared.access.caller import Caller
from services.shared.access.key_record import KeyRecord
from services.shared.access.refused import Refused

_NO_DIGEST = bytes(32)


class KeyRing:
    """Finds keys by their digests: how long that takes depends on digests, which nobody chooses."""

    def __init__(self, records: Iterable[KeyRecord]) -> None:
        self._by_digest = {record.digest: record for record in records}

    def __len__(self) -> int:
        return len(self._by_digest)

    def caller(self, text: str, now: datetime) -> Caller:
        """Whose key `text` is. Raises Refused for one that is unknown, expired or revoked."""
        if not text.startswith(PREFIX) or len(text) > MAX_CHARACTERS:
            raise Refused("no key of ours")
        digest = digest_of(text)
        record = self._by_digest.get(digest)
        known = _NO_DIGEST if record is None else record.digest
        if not hmac.compare_digest(known, digest) or record is None:
            raise Refused("unknown key")
        fault = record.fault(now)
        if fault is not None:
            raise Refused(fault, record.key_id)
        return Caller(tenant=record.tenant, key_id=record.key_id)
