"""A start that did not succeed, in one line: cause, setting or file, remedy."""

from __future__ import annotations

from pathlib import Path


class StartFailed(Exception):
    """The text is the line for the operator."""


def start_failed(name: str, cause: str, log: Path) -> StartFailed:
    """The error for the service `name`, whose last words were `cause`."""
    return StartFailed(f"{name} did not start: {' '.join(cause.split())}; {_remedy(cause, log)}")


def _remedy(cause: str, log: Path) -> str:
    if "cannot listen at" in cause or "address already in use" in cause:
        return "stop what listens there, or choose other ports (tokenway up --help)"
    if ".safetensors" in cause or ".json is missing" in cause or "SHA-256" in cause:
        return "make the model folder again (remove it, then `make model`)"
    if " must be " in cause or " is unknown" in cause or " is not YAML" in cause:
        return "change that setting and start again"
    return f"{log} has all that it said"
