"""The compiled kernels compute what plain torch does, whatever else is in the step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from services.engine.model.batch import Chunk
from services.engine.model.config import ModelConfig, read_config
from services.engine.model.kernel_step import Kernels, KernelSteps
from services.engine.model.kv_pool import KvPool
from services.engine.model.layout import Layout
from services.engine.model.plain_step import PlainSteps
from services.engine.model.rope import rope_table
from services.engine.model.step import BeginStep
from tests.engine.model.tiny_folder import write_config

BLOCKS = 40


class Bench:
    """Both ways to compute steps of the tiny model, on pools with the same random past."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        rope = rope_table(config)
        self.kernels = KernelSteps(config, rope, workers=2)
        self.parallel = KernelSteps(config, rope, workers=2)
        self.parallel.serial = self.parallel.parallel
        self.plain = PlainSteps(config, rope)
        self._past = torch.randn(KvPool(config, BLOCKS, 16, torch.empty(0)).cache.shape)
        self._rows = torch.randn(1000, config.query_size + 2 * config.kv_size)

    def attend(self, begin: BeginStep, chunks: Sequence[Chunk]) -> tuple[torch.Tensor, KvPool]:
        """Attention of the last layer for `chunks`; a token ID chooses the row's content."""
        pool = KvPool(self.config, BLOCKS, 16, torch.empty(0))
        pool.cache.copy_(self._past)
        layout = Layout.of(chunks, 16)
        rows = self._rows[torch.from_numpy(layout.token_ids)]
        step = begin(torch.zeros(len(rows), self.config.hidden_size), layout, pool)
        return step.attend(rows, self.config.layers - 1).clone(), pool


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    torch.manual_seed(11)
    return Bench(read_config(write_config(tmp_path_factory.mktemp("model"))))


chunk_shapes = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=6)


def chunks_of(shapes: Sequence[tuple[int, int]]) -> list[Chunk]:
    """Sequences of (start, rows) in blocks of their own, out of order."""
    return [
        Chunk(
            token_ids=[index * 30 + row for row in range(rows)],
            start=start,
            block_ids=[39 - index - 6 * block for block in range(6)],
            wants_logits=True,
        )
        for index, (start, rows) in enumerate(shapes)
    ]


@given(shapes=chunk_shapes)
def test_attention_and_kept_blocks_equal_the_plain_ones(
    bench: Bench, shapes: list[tuple[int, int]]
) -> None:
    chunks = chunks_of(shapes)
    attended, pool = bench.attend(bench.kernels.begin, chunks)
    expected, expected_pool = bench.attend(bench.plain.begin, chunks)
    torch.testing.assert_close(attended, expected, atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(pool.cache, expected_pool.cache, atol=1e-5, rtol=1e-5)


@given(shapes=chunk_shapes)
def test_attention_of_a_sequence_is_the_same_alone_and_on_more_threads(
    bench: Bench, shapes: list[tuple[int, int]]
) -> None:
    chunks = chunks_of(shapes)
    together, _ = bench.attend(bench.kernels.begin, chunks)
    in_parallel, _ = bench.attend(bench.parallel.begin, chunks)
    assert torch.equal(together, in_parallel)
    alone = [bench.attend(bench.kernels.begin, [chunk])[0] for chunk in chunks]
    assert torch.equal(together, torch.cat(alone))


@given(start=st.integers(0, 60), cuts=st.sets(st.integers(1, 19)))
def test_attention_of_a_prompt_does_not_depend_on_its_chunks(
    bench: Bench, start: int, cuts: set[int]
) -> None:
    whole, _ = bench.attend(bench.kernels.begin, chunks_of([(start, 20)]))
    steps, pool = bench.kernels, KvPool(bench.config, BLOCKS, 16, torch.empty(0))
    pool.cache.copy_(bench._past)
    for begin, end in pairwise([0, *sorted(cuts), 20]):
        chunk = Chunk(
            list(range(begin, end)), start + begin, chunks_of([(0, 1)])[0].block_ids, False
        )
        rows = bench._rows[begin:end].clone()
        step = steps.begin(torch.zeros(end - begin, 48), Layout.of([chunk], 16), pool)
        assert torch.equal(step.attend(rows, bench.config.layers - 1), whole[begin:end])


@pytest.mark.parametrize("parallel", [False, True])
def test_norm_and_activation_equal_the_plain_ones(bench: Bench, parallel: bool) -> None:
    config = bench.config
    kernels = Kernels.compile(config, parallel=parallel)
    residual, delta = torch.randn(2, 9, config.hidden_size)
    gate_up = torch.randn(9, 2 * config.intermediate_size) * 40
    weight = torch.randn(config.hidden_size)
    layout = Layout.of(chunks_of([(0, 9)]), 16)
    pool = KvPool(config, 1, 16, torch.empty(0))
    plain = bench.plain.begin(residual.clone(), layout, pool)
    normed, activated = torch.empty_like(residual), torch.empty(9, config.intermediate_size)
    kernels.norm(residual.numpy(), delta.numpy(), weight.numpy(), config.rms_eps, normed.numpy())
    kernels.silu(gate_up.numpy(), activated.numpy())
    torch.testing.assert_close(normed, plain.add_norm(delta, weight), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(activated, plain.silu_up(gate_up), atol=1e-5, rtol=1e-5)


def test_far_gates_close_and_open_without_overflow(bench: Bench) -> None:
    config = bench.config
    gate_up = torch.full((1, 2 * config.intermediate_size), 1.0)
    gate_up[0, : config.intermediate_size : 2] = -1000.0
    gate_up[0, 1 : config.intermediate_size : 2] = 1000.0
    activated = torch.empty(1, config.intermediate_size)
    bench.kernels.serial.silu(gate_up.numpy(), activated.numpy())
    torch.testing.assert_close(activated[0, :2], torch.tensor([0.0, 1000.0]))
