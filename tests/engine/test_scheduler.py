"""Who computes what: decodes first, budgets, preemption, fairness."""

from __future__ import annotations

from services.engine.admission import Admission
from services.engine.blocks import BlockPool
from services.engine.scheduler import Limits, Scheduler, Work
from services.engine.sequence import Sequence
from services.shared.stream.generation import CacheControl, Generation, Stopping
from tests.engine.harness import MODEL, TIMEOUT_MS

ADMISSION = Admission(MODEL, TIMEOUT_MS)


def sequence(prompt: int, first: int = 10, cache: CacheControl | None = None) -> Sequence:
    return ADMISSION.admit(
        Generation(
            request_id="r",
            prompt_ids=[first + index for index in range(prompt)],
            stopping=Stopping(max_tokens=100),
            cache=cache or CacheControl(),
        )
    )


def scheduler(blocks: int = 32, batch: int = 8, budget: int = 16) -> Scheduler:
    return Scheduler(BlockPool(blocks, 4), Limits(max_batch_size=batch, token_budget=budget))


def step(subject: Scheduler) -> list[Work]:
    """Computes the scheduled work; whoever draws gets a token."""
    works = subject.schedule()
    for work in works:
        draws = work.draws
        subject.advance(work)
        if draws:
            work.sequence.tokens.append(500)
    return works


def counts(works: list[Work]) -> dict[int, int]:
    return {work.sequence.key: work.count for work in works}


def test_a_long_prompt_never_keeps_running_sequences_from_their_token() -> None:
    subject = scheduler(blocks=64)
    running = [sequence(3, first=10 * number) for number in range(3)]
    for one in running:
        subject.add(one)
    step(subject)
    long = sequence(100, first=300)
    subject.add(long)
    for _ in range(5):
        given = counts(step(subject))
        assert [given[one.key] for one in running] == [1, 1, 1]
        assert given[long.key] == 13


def test_a_short_prompt_overtakes_a_long_one_and_the_long_one_still_moves() -> None:
    subject = scheduler(blocks=64)
    long, short = sequence(100), sequence(10, first=300)
    subject.add(long)
    step(subject)
    subject.add(short)
    given = counts(step(subject))
    assert given[short.key] == 10
    assert given[long.key] == 6


def test_no_step_exceeds_the_token_budget() -> None:
    subject = scheduler(blocks=200, batch=10, budget=16)
    for number in range(10):
        subject.add(sequence(20, first=50 * number))
    for _ in range(40):
        assert sum(counts(step(subject)).values()) <= 16


def test_a_full_batch_lets_the_rest_wait() -> None:
    subject = scheduler(batch=2)
    for number in range(3):
        subject.add(sequence(3, first=50 * number))
    step(subject)
    assert (len(subject.running), len(subject.waiting)) == (2, 1)


def test_a_prompt_waits_until_its_blocks_are_there() -> None:
    subject = scheduler(blocks=6)
    first, second = sequence(16), sequence(16, first=300)
    subject.add(first)
    subject.add(second)
    step(subject)
    assert subject.running == [first]
    subject.remove(first)
    step(subject)
    assert subject.running == [second]


def test_the_youngest_gives_up_its_blocks_and_goes_on_later() -> None:
    subject = scheduler(blocks=5)
    old, young = sequence(7), sequence(7, first=300)
    subject.add(old)
    subject.add(young)
    for _ in range(3):
        step(subject)
    assert young.preemptions == 1
    assert subject.running == [old]
    subject.remove(old)
    while young.remaining > 1 or not young.blocks:
        step(subject)
    assert len(young.tokens) > 7
    subject.remove(young)
    assert subject.pool.available == subject.pool.count


def test_a_lone_sequence_can_fill_the_whole_pool() -> None:
    subject = scheduler(blocks=5)
    one = sequence(4)
    subject.add(one)
    while len(one.tokens) < 20:
        assert step(subject)
    assert one.preemptions == 0


def test_a_known_prefix_is_not_computed_again() -> None:
    subject = scheduler()
    first = sequence(12)
    subject.add(first)
    step(subject)
    subject.remove(first)
    second = sequence(12)
    subject.add(second)
    assert counts(step(subject)) == {second.key: 4}
    assert second.cached_tokens.total == 8


def test_a_wholly_cached_prompt_still_computes_its_last_token_at_once() -> None:
    subject = scheduler()
    first = sequence(13)
    subject.add(first)
    step(subject)
    subject.remove(first)
    second = sequence(13)
    subject.add(second)
    assert counts(step(subject)) == {second.key: 1}


def test_salts_keep_prefixes_apart() -> None:
    subject = scheduler()
    first = sequence(12, cache=CacheControl(salt=b"one"))
    subject.add(first)
    step(subject)
    subject.remove(first)
    second = sequence(12, cache=CacheControl(salt=b"two"))
    subject.add(second)
    assert counts(step(subject)) == {second.key: 12}


def test_a_generation_may_refuse_to_read_or_to_write_the_cache() -> None:
    subject = scheduler()
    for cache in (CacheControl(write=False), CacheControl(read=False), CacheControl(read=False)):
        one = sequence(12, cache=cache)
        subject.add(one)
        assert counts(step(subject)) == {one.key: 12}
        subject.remove(one)


def test_scheduling_twice_without_computing_gives_the_same_work() -> None:
    subject = scheduler()
    subject.add(sequence(30))
    subject.add(sequence(5, first=300))
    assert counts(subject.schedule()) == counts(subject.schedule())
