"""What a generation is charged, and what is left to ask a replica for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.balancing.offer import Offer
from services.router.relay.delivery import Delivery
from services.shared.stream.events import Accepted, CachedTokens
from services.shared.stream.generation import RoutingHints
from tests.recorder import generation

PROMPT = tuple(range(33))


@pytest.mark.parametrize(
    ("cached", "prefilled_from", "cost"),
    [
        (CachedTokens(), None, 33),
        (CachedTokens(device=8), None, 25),
        (CachedTokens(peer=32), None, 1),
        (CachedTokens(peer=32), 0, 33),
        (CachedTokens(peer=32), 16, 17),
        (CachedTokens(peer=32), 32, 1),
        (CachedTokens(device=16, peer=16), 0, 17),
        (CachedTokens(device=8, host=8, peer=8), 20, 13),
        (CachedTokens(service=32), 0, 1),
        (CachedTokens(), 0, 33),
    ],
)
def test_each_token_of_a_prompt_is_charged_once_whoever_computed_it(
    cached: CachedTokens, prefilled_from: int | None, cost: int
) -> None:
    delivery = Delivery(generation("x", prompt_ids=PROMPT), 0.0)
    assert delivery.cost() == 0
    event = Accepted(prompt_tokens=len(PROMPT), cached_tokens=cached, seed=1)
    delivery.accept(event, "v", 0.5, 1.0, prefilled_from)
    assert delivery.cost() == cost
    delivery.ids.extend((5, 6))
    assert delivery.cost() == cost + 2


def test_where_a_caller_points_is_never_passed_on() -> None:
    asked = replace(generation("x"), routing=RoutingHints(prefill_peer="10.0.0.1:22"))
    delivery = Delivery(asked, 0.0)
    assert delivery.rest(None).routing.prefill_peer is None
    assert delivery.rest(None, offer=Offer(source="p")).routing.prefill_peer == "p"
    assert delivery.prompt(None).routing.prefill_peer is None
    assert delivery.prompt(None, peer="q").routing.prefill_peer == "q"


def test_a_prompt_to_compute_has_what_was_delivered_and_no_output() -> None:
    delivery = Delivery(generation("x", prompt_ids=PROMPT), 0.0)
    accepted = Accepted(prompt_tokens=33, cached_tokens=CachedTokens(), seed=9)
    delivery.accept(accepted, "v", 0.5, 1.0)
    delivery.ids.extend((5, 6))
    prompt = delivery.prompt(50, "v")
    assert list(prompt.prompt_ids) == [*PROMPT, 5, 6]
    assert (prompt.generated_ids, prompt.stopping.max_tokens) == ((), 0)
    assert prompt.sampling.seed == 9
    assert prompt.routing.model_version == "v"
    assert prompt.quality_of_service.timeout_ms == 50
