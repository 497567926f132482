"""Any generation, event and load that can be built."""

from __future__ import annotations

from hypothesis import strategies as st

from services.shared.errors import Code
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    CacheMiss,
    Failed,
    Finished,
    FinishReason,
    Logprobs,
    Refused,
    Timeline,
    Tokens,
    Usage,
)
from services.shared.stream.generation import (
    CacheControl,
    Constraint,
    ConstraintKind,
    Generation,
    Output,
    PriorityClass,
    QualityOfService,
    RoutingHints,
    Sampling,
    Stopping,
)
from services.shared.stream.load import DeviceMemory, Load, ReplicaState

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ids = st.lists(u32, max_size=8)


def real(low: float, high: float, *, exclude_min: bool = False) -> st.SearchStrategy[float]:
    return st.floats(low, high, width=32, exclude_min=exclude_min)


samplings = st.builds(
    Sampling,
    temperature=real(0, 2),
    top_p=st.none() | real(0, 1, exclude_min=True),
    top_k=st.none() | st.integers(1, 2**31 - 1),
    min_p=st.none() | real(0, 1),
    presence_penalty=real(-2, 2),
    frequency_penalty=real(-2, 2),
    repetition_penalty=real(0, 2, exclude_min=True),
    logit_bias=st.lists(st.tuples(u32, real(-100, 100)), max_size=3).map(tuple),
    seed=st.none() | u64,
)
stoppings = st.builds(
    Stopping,
    max_tokens=st.none() | st.integers(100, 2**31 - 1),
    min_tokens=st.integers(0, 100),
    stop_token_ids=ids.map(tuple),
    ignore_eos=st.booleans(),
)
generations = st.builds(
    Generation,
    request_id=text,
    model=text,
    prompt_ids=st.lists(u32, min_size=1, max_size=8),
    generated_ids=ids,
    sampling=samplings,
    stopping=stoppings,
    output=st.builds(
        Output,
        logprobs=st.none() | st.integers(0, 20),
        prompt_logprobs=st.none() | st.integers(0, 20),
    ),
    constraint=st.none() | st.builds(Constraint, st.sampled_from(ConstraintKind), text),
    quality_of_service=st.builds(
        QualityOfService,
        priority_class=st.sampled_from(PriorityClass),
        tenant=st.none() | text,
        timeout_ms=st.none() | st.integers(1, 2**32 - 1),
        weight=st.none() | st.floats(0.001, 1000),
    ),
    cache=st.builds(
        CacheControl, salt=st.binary(max_size=64), read=st.booleans(), write=st.booleans()
    ),
    routing=st.builds(
        RoutingHints,
        session_key=st.none() | text,
        prefill_peer=st.none() | text,
        prefill_computes=st.booleans(),
        model_version=st.none() | text,
    ),
)

cached = st.builds(CachedTokens, device=u32, host=u32, peer=u32, service=u32)
usages = st.builds(Usage, prompt_tokens=u32, cached_tokens=u32, completion_tokens=u32)
accepteds = st.builds(
    Accepted,
    prompt_tokens=u32,
    cached_tokens=cached,
    seed=u64,
    routed=text,
)
logprobs = st.builds(
    Logprobs,
    chosen=st.lists(real(-100, 0), max_size=4),
    top_token_ids=ids,
    top_logprobs=st.lists(real(-100, 0), max_size=4),
)
tokens = st.builds(Tokens, u32, ids, st.none() | logprobs)
finisheds = st.builds(
    Finished,
    reason=st.sampled_from(FinishReason),
    usage=usages,
    timeline=st.builds(
        Timeline,
        queued_us=u64,
        prefill_us=u64,
        decode_us=u64,
        preemptions=u32,
        continuations=u32,
        fetch_us=u64,
        cached_tokens=cached,
        cache_miss=st.none() | st.sampled_from(CacheMiss),
        admission_us=u64,
    ),
    stop_token_id=st.none() | u32,
)
faileds = st.builds(
    Failed,
    code=st.sampled_from(Code),
    message=text,
    retryable=st.booleans(),
    field=st.none() | text,
    retry_after_s=st.none() | u32.map(lambda milliseconds: milliseconds / 1000),
)
ends = finisheds | faileds
stream_events = st.builds(
    lambda *events: [event for event in events if event is not None],
    st.none() | accepteds,
    st.none() | tokens,
    st.none() | ends,
)
refusals = st.builds(Refused, text)
loads = st.builds(
    Load,
    state=st.sampled_from(ReplicaState),
    running=u32,
    waiting=u32,
    pending_prompt_tokens=u64,
    outstanding_tokens=u64,
    free_blocks=u32,
    cached_blocks=u32,
    total_blocks=u32,
    step_us=u64,
    progress_age_ms=u64,
    slots=u32,
    expected_wait_ms=u64,
    refusing=st.booleans(),
    device_utilization=st.none() | st.integers(0, 100),
    device_memory=st.none()
    | st.builds(DeviceMemory, total_bytes=u64, used_bytes=u64, free_bytes=u64),
)
