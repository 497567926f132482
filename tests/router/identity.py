"""What replicas of these tests serve."""

from __future__ import annotations

from services.router.status import Identity

IDENTITY = Identity(model="m", version="w", tokenizer_fingerprint="t")
