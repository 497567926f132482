"""Text that callers keep for us: opaque to them, and known again when it comes back."""

from __future__ import annotations

import base64
import hmac
import secrets
from dataclasses import dataclass, field

_DIGEST = "sha256"
_MAC_BYTES = 32


@dataclass(frozen=True, slots=True)
class Seal:
    """Authenticates with a key; codecs that share it read each other's blobs."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def closed(self, text: str) -> str:
        data = text.encode(errors="replace")
        return base64.urlsafe_b64encode(self._mac(data) + data).decode()

    def opened(self, blob: str) -> str | None:
        """The text, or None for a blob that this key did not make."""
        try:
            raw = base64.urlsafe_b64decode(blob)
        except ValueError:
            return None
        mac, data = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(data)):
            return None
        return data.decode()

    def _mac(self, data: bytes) -> bytes:
        return hmac.digest(self.key, data, _DIGEST)
