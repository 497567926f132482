"""What tests of access share."""

from __future__ import annotations

import pytest

from tests.shared.access.signer import Signer


@pytest.fixture(scope="session")
def signer() -> Signer:
    return Signer()
