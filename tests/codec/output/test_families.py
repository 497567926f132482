"""What each family writes, as its models do it, and as they do it wrong."""

# ruff: noqa: RUF001, E501  the outputs stand as the models write them

from __future__ import annotations

import pytest

from services.codec.output.families import FAMILIES
from services.codec.output.parser import OutputParser
from tests.codec.output.reading import Said, call, callables, dialect, said

SECTION = "<｜tool▁calls▁begin｜>"
SECTION_END = "<｜tool▁calls▁end｜>"
CALL = "<｜tool▁call▁begin｜>"
CALL_END = "<｜tool▁call▁end｜>"
SEP = "<｜tool▁sep｜>"
HARMONY_TAIL = "<|start|>assistant"
NASTY = r'{"a": {"b": ["</tool_call>", "\"{", "é\n"]}, "c": -1.5e3}'

Case = tuple[str, str, str, list[Said]]
CASES: list[Case] = [
    ("hermes", "", "Hello", [("text", "Hello")]),
    ("hermes", "", "a < b <tool", [("text", "a < b <tool")]),
    (
        "hermes",
        "",
        f'<think>\nhm</think>\n\nOk\n<tool_call>\n{{"name": "f", "arguments": {NASTY}}}\n</tool_call>',
        [("think", "hm"), ("text", "Ok\n"), call("f", NASTY)],
    ),
    ("hermes", "<think>\n", "hm</think>\n\nOk", [("think", "hm"), ("text", "Ok")]),
    ("hermes", "<think>\n\n</think>\n\n", "Ok </think> so", [("text", "Ok so")]),
    (
        "hermes",
        "<think>",
        'hm\n<tool_call>{"name": "f", "arguments": {}}</tool_call>',
        [("think", "hm\n"), call("f", "{}")],
    ),
    (
        "hermes",
        "",
        '<tool_call>{"arguments": {"x": 1}, "name": "f"}</tool_call>\n\n'
        '<tool_call>{"name": "g"}</tool_call>\n done',
        [call("f", '{"x": 1}'), call("g", "{}"), ("text", "done")],
    ),
    (
        "hermes",
        "",
        '<tool_call>{"name": "f", "arguments": "{\\"x\\": 1}"}</tool_call>',
        [call("f", '{"x": 1}')],
    ),
    (
        "hermes",
        "",
        '<tool_call>{"id": [1, "}"], "name": "f", "arguments": null}</tool_call>',
        [call("f", "{}")],
    ),
    (
        "hermes",
        "",
        'x <tool_call>{"name": "no", "arguments": {}}</tool_call> y',
        [("text", 'x <tool_call>{"name": "no", "arguments": {}}</tool_call> y')],
    ),
    ("hermes", "", "<tool_call>oh</tool_call>", [("text", "<tool_call>oh</tool_call>")]),
    ("hermes", "", '<tool_call>{"na', [("text", '<tool_call>{"na')]),
    (
        "hermes",
        "",
        '<tool_call>{"name": "f", "arguments": {"x": "ab',
        [("call", "f", '{"x": "ab', '{"x": "ab', False)],
    ),
    (
        "hermes",
        "",
        '<tool_call>{"name": "f", "arguments": {"x": tru!}}</tool_call>so',
        [("call", "f", '{"x": tru', '{"x": tru!}}', False), ("text", "so")],
    ),
    # A brace too few or too many is common, and harms no arguments.
    ("hermes", "", '<tool_call>{"name": "f", "arguments": {}</tool_call>', [call("f", "{}")]),
    ("hermes", "", '<tool_call>{"name": "f", "arguments": {}}}</tool_call>', [call("f", "{}")]),
    (
        "hermes",
        "",
        r'<tool_call>{"name": "f", "arguments": "{\"x\": \"\ud800\"}"}</tool_call>',
        [("call", "f", "", r'"{\"x\": \"\ud800\"}"}', False)],
    ),
    ("hermes", "", '<tool_call>{"name": "f", "arguments": ""}</tool_call>', [call("f", "{}")]),
    (
        "qwen3-coder",
        "<think>\n",
        'hm\n</think>\n\n<tool_call>\n<function=f>\n<parameter=text>\n1 < 2\n\n"q"\n</parameter>\n'
        "<parameter=count>\n7\n</parameter>\n<parameter=flag>True</parameter>\n"
        "<parameter=list>[1, {}]</parameter>\n</function>\n</tool_call>",
        [
            ("think", "hm\n"),
            call("f", r'{"text": "1 < 2\n\n\"q\"", "count": 7, "flag": true, "list": [1, {}]}'),
        ],
    ),
    (
        "qwen3-coder",
        "",
        "<tool_call><function=f><parameter=count>many</parameter><parameter=maybe>null</parameter>"
        "<parameter=either>null</parameter><parameter=new>5</parameter></function></tool_call>",
        [call("f", '{"count": "many", "maybe": null, "either": null, "new": "5"}')],
    ),
    ("qwen3-coder", "", "<tool_call><function=g></function></tool_call>", [call("g", "{}")]),
    (
        "qwen3-coder",
        "",
        "<tool_call><function=f><parameter=text>ab</param",
        [("call", "f", '{"text": "ab</param', '{"text": "ab</param', False)],
    ),
    (
        "smollm2",
        "",
        '<tool_call>[{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}]</tool_call>',
        [call("f", '{"x": 1}'), call("g", "{}")],
    ),
    ("smollm2", "", "<tool_call>[]</tool_call>No.", [("text", "No.")]),
    ("smollm2", "", "<think>is text</think>", [("text", "<think>is text</think>")]),
    (
        "llama3",
        "",
        '{"name": "f", "parameters": {"x": 1}}; {"type": "function", "name": "g", "parameters": {}}',
        [call("f", '{"x": 1}'), call("g", "{}")],
    ),
    ("llama3", "", '<|python_tag|>{"name": "g", "parameters": {}}', [call("g", "{}")]),
    ("llama3", "", "<|python_tag|>print(1)", [("text", "<|python_tag|>print(1)")]),
    ("llama3", "", '{"answer": 42}', [("text", '{"answer": 42}')]),
    ("llama3", "", '\n{"name": "Ann", "age": 7}', [("text", '\n{"name": "Ann", "age": 7}')]),
    ("llama3", "", "[1, 2]", [("text", "[1, 2]")]),
    ("llama3", "", 'so {"name": "f"}', [("text", 'so {"name": "f"}')]),
    (
        "mistral",
        "",
        'Ok[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}, "id": "abcdefghi"}]',
        [("text", "Ok"), call("f", '{"x": 1}')],
    ),
    (
        "mistral",
        "",
        '[THINK]hm[/THINK][TOOL_CALLS]f[CALL_ID]abc[ARGS]{"x": 1}[TOOL_CALLS]g[ARGS]{}',
        [("think", "hm"), call("f", '{"x": 1}'), call("g", "{}")],
    ),
    (
        "deepseek-v3",
        "<think>\n",
        f'hm</think>{SECTION}{CALL}function{SEP}f\n```json\n{{"a": "```"}}\n```{CALL_END}\n'
        f"{CALL}function{SEP}g\n```json\n{{}}\n```{CALL_END}{SECTION_END}",
        [("think", "hm"), call("f", '{"a": "```"}'), call("g", "{}")],
    ),
    (
        "deepseek-v3.1",
        "",
        f'Ok{SECTION}{CALL}f{SEP}{{"x": 1}}{CALL_END}{CALL}g{SEP}{{}}{CALL_END}{SECTION_END}',
        [("text", "Ok"), call("f", '{"x": 1}'), call("g", "{}")],
    ),
    (
        "deepseek-v3.1",
        "",
        f"{SECTION}{CALL}no{SEP}{{}}{CALL_END}{SECTION_END}",
        [("text", f"{SECTION}{CALL}no{SEP}{{}}{CALL_END}{SECTION_END}")],
    ),
    (
        "glm",
        "",
        "<think>hm</think>\n<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>a</arg_value>\n"
        "<arg_key>count</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
        [("think", "hm"), call("f", '{"text": "a", "count": 2}')],
    ),
    (
        "glm",
        "",
        "<tool_call>f<arg_key>text</arg_key><arg_value>a</arg_value></tool_call>"
        "<tool_call>g</tool_call>",
        [call("f", '{"text": "a"}'), call("g", "{}")],
    ),
    (
        "kimi-k2",
        "",
        "Ok<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        '{"x": 1}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}'
        "<|tool_call_end|><|tool_calls_section_end|>",
        [("text", "Ok"), call("f", '{"x": 1}'), call("g", "{}")],
    ),
    (
        "kimi-k2",
        "",
        "<|tool_call_section_begin|><|tool_call_begin|>f<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_call_section_end|>",
        [call("f", "{}")],
    ),
    (
        "harmony",
        HARMONY_TAIL,
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Ok"
        "<|return|>",
        [("think", "hm"), ("text", "Ok")],
    ),
    (
        "harmony",
        HARMONY_TAIL,
        "<|channel|>commentary<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.f <|constrain|>json<|message|>{"x": 1}<|call|>',
        [("text", "Let me see."), call("f", '{"x": 1}')],
    ),
    (
        "harmony",
        HARMONY_TAIL,
        ' to=functions.g<|channel|>commentary<|message|>{"x": 1}<|call|>',
        [call("g", '{"x": 1}')],
    ),
    (
        "harmony",
        f"{HARMONY_TAIL}<|channel|>analysis<|message|>so",
        " hm<|end|>",
        [("think", "hm")],
    ),
    ("harmony", HARMONY_TAIL, "No header", [("text", "No header")]),
    (
        "gemma4",
        "",
        '<|channel>thought\nhm<|tool_call>call:f{text:<|"|>say "hi"<|"|>,count:1,'
        "list:[1,{b:true}]}<tool_call|>",
        [
            ("think", "hm"),
            call("f", r'{"text": "say \"hi\"", "count": 1, "list": [1, {"b": true}]}'),
        ],
    ),
    ("gemma4", "", "<|tool_call>call:g{}<tool_call|>Ok", [call("g", "{}"), ("text", "Ok")]),
    ("plain", "", "<think>x</think><tool_call>", [("text", "<think>x</think><tool_call>")]),
]


@pytest.mark.parametrize("as_tokens", [False, True])
@pytest.mark.parametrize(("name", "tail", "output", "expected"), CASES)
def test_output_is_told_apart(
    name: str, tail: str, output: str, expected: list[Said], as_tokens: bool
) -> None:
    of_model = dialect(FAMILIES[name], as_tokens=as_tokens)
    coded, coded_tail = of_model.alphabet.coded(output), of_model.alphabet.coded(tail)
    if as_tokens and "</tool_call>" in "".join(part[2] for part in expected if part[0] == "call"):
        # Inside a string the model writes the characters, and not the token.
        coded = coded.replace(of_model.alphabet.coded("</tool_call>"), "</tool_call>", 1)
    for size in (1, len(output)):
        parser = OutputParser(of_model, callables(), coded_tail)
        pieces = [coded[at : at + size] for at in range(0, len(coded), size)]
        assert said(parser, pieces) == expected


@pytest.mark.parametrize(("name", "tail", "output", "expected"), CASES)
def test_calls_are_text_where_nothing_may_be_called(
    name: str, tail: str, output: str, expected: list[Said]
) -> None:
    told = said(OutputParser(dialect(FAMILIES[name]), None, tail), [output])
    assert all(part[0] in {"text", "think"} for part in told)
    if not any(part[0] == "call" for part in expected) and name != "harmony":
        shown = "".join(part[1] for part in told)
        assert all(part[1].strip() in shown for part in expected)


def test_literal_marker_is_text_where_the_marker_is_a_token() -> None:
    of_model = dialect(FAMILIES["hermes"], as_tokens=True)
    text = '<think>no</think> <tool_call>{"name": "f"}</tool_call>'
    assert said(OutputParser(of_model, callables()), [text]) == [("text", text)]


def test_only_one_call_is_read_where_one_is_wanted() -> None:
    one = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    parser = OutputParser(dialect(FAMILIES["hermes"]), callables(parallel=False))
    assert said(parser, [one + one + "more"]) == [call("f", "{}")]
    assert parser.calls is not None
    assert parser.calls.is_enough


def test_all_families_can_be_chosen() -> None:
    assert {case[0] for case in CASES} == set(FAMILIES)
