"""However an output is cut into pieces, the same is told, and nothing that must be taken back."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.codec.output.families import FAMILIES
from services.codec.output.json_prefix import JsonPrefix
from services.codec.output.parser import OutputParser
from tests.codec.output.reading import Said, callables, dialect, said
from tests.codec.output.test_families import CASES
from tests.examples import examples

EXAMPLES = examples(450)
COMMON = ("a", " ", "\n", "x < y", "{", "}", "[", "]", '"', ":", ",", "<", "f", "no", '{"x": "é"}')


def blocks(name: str) -> list[str]:
    """Whole outputs, their halves, every marker and its halves, and what stands between them."""
    outputs = [output for family, _, output, _ in CASES if family == name]
    markers = list(FAMILIES[name].markers())
    halves = [text[: len(text) // 2] for text in outputs + markers]
    calls = ['{"name": "f", "arguments": {"text": "a"}}', '"name": "g"', '"arguments": {"b": [1']
    return [*outputs, *markers, *halves, *calls, *COMMON]


def check_calls(told: list[Said]) -> None:
    """Fragments begin JSON, and a valid call is an object."""
    for part in told:
        if part[0] != "call":
            continue
        prefix = JsonPrefix()
        assert prefix.push(part[2]) == len(part[2])
        assert part[3].startswith(part[2])
        json.loads(part[2] + prefix.closing())
        assert part[4] == (prefix.is_complete and part[2] == part[3])


@pytest.mark.parametrize("as_tokens", [False, True])
@pytest.mark.parametrize("name", sorted(FAMILIES))
@settings(max_examples=EXAMPLES, deadline=None)
@given(chosen=st.binary(max_size=8), seed=st.integers(0, 2**32))
def test_cuts_change_nothing(name: str, as_tokens: bool, chosen: bytes, seed: int) -> None:
    known = blocks(name)
    of_model = dialect(FAMILIES[name], as_tokens=as_tokens)
    output = of_model.alphabet.coded("".join(known[byte % len(known)] for byte in chosen))
    rng = random.Random(seed)  # noqa: S311 no secret
    terms = callables() if rng.random() < 0.8 else None
    tail = rng.choice(["", *filter(None, FAMILIES[name].thinking or ())])
    at_once = said(OutputParser(of_model, terms, of_model.alphabet.coded(tail)), [output])
    cuts = sorted(rng.randrange(len(output) + 1) for _ in range(rng.randrange(12)))
    pieces = [output[a:b] for a, b in zip([0, *cuts], [*cuts, len(output)], strict=True)]
    parser = OutputParser(of_model, terms, of_model.alphabet.coded(tail))
    assert said(parser, pieces) == at_once
    check_calls(at_once)
    assert not any("\ud800" <= char <= "\udfff" for part in at_once for char in part[1])
