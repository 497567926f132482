"""Settings of the connections between services."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class MeshSettings:
    """How services know each other.

    Args:
        mtls: certificates on both sides of each connection; without, on this machine alone.
        certificates: the folder with ours, as `tokenway certs` makes it; changes are followed.
        audit_file: to which what operators did and who was refused is added; None notes nothing.
    """

    mtls: bool = True
    certificates: Path | None = None
    audit_file: Path | None = None
