"""Versions of the model: each draws other tokens."""

from __future__ import annotations

VERSIONS = ("weights-1", "weights-2")
