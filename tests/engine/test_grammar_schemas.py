"""The real model at temperature 1: what it writes under a JSON schema validates."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import torch
from tokenizers import Tokenizer

from services.engine.blocks import BlockPool
from services.engine.model.llama import LlamaModel
from services.engine.model_runner import ModelRunner
from services.engine.parts import BLOCK_SIZE, Parts
from services.engine.sampler import Sampler
from services.engine.scheduler import Limits
from services.engine.stopping import Stopper
from services.shared.model_folder import TOKENIZER, ModelFolder
from services.shared.stream.events import Finished, FinishReason
from services.shared.stream.generation import Generation, Sampling, Stopping
from tests.engine.grammar_bed import END_OF_TEXT, compiler, parts, schema
from tests.engine.harness import Harness

BLOCKS = 600
PROMPT = "<|im_start|>user\nGive me an example as JSON.<|im_end|>\n<|im_start|>assistant\n"


def obj(*, required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def array(items: Any, **bounds: int) -> dict[str, Any]:
    return {"type": "array", "items": items, **({"minItems": 1, "maxItems": 3} | bounds)}


WORD = {"type": "string", "maxLength": 8}
COLOUR = {"enum": ["red", "green", "blue"]}
SMALL = {"type": "integer", "minimum": -20, "maximum": 300}
NODE = obj(required=["value"], value=SMALL, next={"$ref": "#/$defs/last"})

SCHEMAS: list[dict[str, Any]] = [
    {"type": "boolean"},
    {"type": "null"},
    SMALL,
    {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 5},
    {"type": "integer", "minimum": 0, "maximum": 1000, "multipleOf": 25},
    {"type": "number", "minimum": 0, "maximum": 10, "multipleOf": 0.25},
    WORD,
    {"type": "string", "minLength": 5, "maxLength": 5},
    {"type": "string", "pattern": "^[a-z]{3}-[0-9]{2}$"},
    {"type": "string", "pattern": "x", "maxLength": 12},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "ipv4"},
    COLOUR,
    {"enum": [1, "one", None, [1], {"one": 1}]},
    {"const": {"kind": "fixed", "list": [1, 2.5, True]}},
    array(COLOUR),
    array(SMALL, minItems=4, maxItems=4),
    array(array({"type": "boolean"})),
    {"type": "array", "prefixItems": [COLOUR, SMALL], "items": False, "minItems": 2},
    obj(name=WORD, colour=COLOUR),
    obj(required=["name"], name=WORD, colour=COLOUR, size=SMALL),
    obj(point=obj(x=SMALL, y=SMALL), label={"type": ["string", "null"], "maxLength": 6}),
    obj(items=array(obj(id=SMALL, done={"type": "boolean"}))),
    {"type": "object", "additionalProperties": SMALL, "maxProperties": 2},
    {"type": "object", "patternProperties": {"^k[0-9]$": COLOUR}, "additionalProperties": False,
     "maxProperties": 2},
    {"anyOf": [obj(cat=WORD), obj(dog=SMALL)]},
    {"oneOf": [obj(kind={"const": "a"}, a=SMALL), obj(kind={"const": "b"}, b=COLOUR)]},
    {"allOf": [{"type": "integer", "minimum": 10}, {"maximum": 20}]},
    {**NODE, "$defs": {"last": obj(value=SMALL)}},
]  # fmt: skip


@pytest.fixture(scope="module")
def texts(model_folder: ModelFolder) -> list[str]:
    """What the model writes for each schema, all in one batch."""
    tokenizer = Tokenizer.from_file(str(model_folder.file(TOKENIZER)))
    prompt_ids = tokenizer.encode(PROMPT).ids
    model = LlamaModel.load(model_folder, device=torch.device("cpu"))
    harness = Harness(real(model, model_folder), Limits(max_batch_size=32, token_budget=512))
    keys = [
        harness.add(
            Generation(
                request_id=f"r{number}",
                prompt_ids=prompt_ids,
                sampling=Sampling(temperature=1.0, seed=number),
                stopping=Stopping(max_tokens=150),
                constraint=schema(value),
            )
        )
        for number, value in enumerate(SCHEMAS)
    ]
    harness.run()
    for key in keys:
        end = harness.end(key)
        assert isinstance(end, Finished)
        assert end.reason in {FinishReason.CONSTRAINT_COMPLETE, FinishReason.END_OF_TEXT}
    return [tokenizer.decode(harness.ids(key)) for key in keys]


def real(model: LlamaModel, folder: ModelFolder) -> Parts:
    simulated = parts(compiler(folder))
    sampler = Sampler(Stopper(END_OF_TEXT, simulated.model.context_length))
    return Parts(
        model=simulated.model,
        pool=BlockPool(BLOCKS, BLOCK_SIZE),
        runner=ModelRunner(model, model.allocate(BLOCKS, BLOCK_SIZE), sampler),
        device="cpu",
        tokenizer_fingerprint="t",
        grammars=simulated.grammars,
    )


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_what_the_model_writes_validates(texts: list[str], number: int) -> None:
    jsonschema.validate(json.loads(texts[number]), SCHEMAS[number])
