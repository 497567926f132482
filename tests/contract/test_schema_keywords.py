"""What the codec lets pass of a schema, the engine can express, and the other way round."""

from __future__ import annotations

import pytest

from services.codec.protocols.schema import FORMATS, UNSUPPORTED
from services.engine.grammar_compiler import GrammarCompiler
from services.shared.errors import InvalidRequest
from services.shared.model_folder import ModelFolder
from tests.engine.grammar_bed import compiler, schema

VALUES: dict[str, object] = {
    **{keyword: {} for keyword in UNSUPPORTED},
    **dict.fromkeys(("minContains", "maxContains"), 1),
    **dict.fromkeys(("$dynamicRef", "$recursiveRef"), "#"),
    "$dynamicAnchor": "here",
    "uniqueItems": True,
}


@pytest.fixture(scope="module")
def grammars(model_folder: ModelFolder) -> GrammarCompiler:
    return compiler(model_folder)


@pytest.mark.parametrize("keyword", sorted(UNSUPPORTED))
def test_the_engine_refuses_what_the_codec_does(grammars: GrammarCompiler, keyword: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        grammars.matcher(schema({"type": "array", keyword: VALUES[keyword]}), [])
    assert keyword in refusal.value.message


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_engine_knows_the_formats_of_the_codec(grammars: GrammarCompiler, name: str) -> None:
    assert any(grammars.matcher(schema({"type": "string", "format": name}), []).allowed())


@pytest.mark.parametrize("name", ["iri", "regex", "uri-reference", "json-pointer", "binary"])
def test_the_engine_refuses_other_formats(grammars: GrammarCompiler, name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        grammars.matcher(schema({"type": "string", "format": name}), [])
