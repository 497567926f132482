"""The error for a model file that cannot be imported."""

from __future__ import annotations


class BadModelFile(Exception):
    """A file that an import cannot use; the message names its part, the limit and the value."""
