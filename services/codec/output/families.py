"""The families of models that are known, and how to tell which one a model is of."""

# ruff: noqa: RUF001  some families spell their markers with such characters

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from services.codec.output.family import (
    CallForm,
    CallText,
    Channels,
    Family,
    Head,
    Parameters,
    Syntax,
)
from services.codec.output.tool_text import JSON_LIST, TAGGED_OBJECT

_THINK = ("<think>", "</think>")
_TAG = ("<tool_call>", "</tool_call>")
_DEEPSEEK = CallForm(
    opens=("<｜tool▁calls▁begin｜>",),
    closes=("<｜tool▁calls▁end｜>",),
    begins=("<｜tool▁call▁begin｜>",),
    ends=("<｜tool▁call▁end｜>",),
    syntax=Syntax.NAMED,
    head=Head(
        pattern=r"\s*(?:function<｜tool▁sep｜>)?\s*(.+?)\s*",
        ends=("\n```json\n",),
        within=("<｜tool▁sep｜>",),
    ),
)

PLAIN = Family(name="plain")
HERMES = Family(
    name="hermes",
    thinking=_THINK,
    calls=CallForm(opens=_TAG[:1], closes=_TAG[1:]),
    tool_text=TAGGED_OBJECT,
    call_text=CallText(
        opens="<tool_call>\n",
        before='{"name": "',
        between='", "arguments": ',
        after="}",
        joins="\n</tool_call>\n<tool_call>\n",
        closes="\n</tool_call>",
    ),
)
QWEN3_CODER = Family(
    name="qwen3-coder",
    thinking=_THINK,
    calls=CallForm(
        opens=_TAG[:1],
        closes=_TAG[1:],
        ends=("</function>",),
        syntax=Syntax.PARAMETERS,
        head=Head(pattern=r"\s*<function=(.+?)\s*", ends=(">",)),
        parameters=Parameters(
            begins="<parameter=", name_ends=">", value_begins="", value_ends="</parameter>"
        ),
    ),
)
SMOLLM2 = Family(
    name="smollm2",
    calls=CallForm(opens=_TAG[:1], closes=_TAG[1:]),
    tool_text=JSON_LIST,
    call_text=CallText(
        opens="<tool_call>[",
        before='{"name": "',
        between='", "arguments": ',
        after="}",
        joins=", ",
        closes="]</tool_call>",
    ),
)
LLAMA3 = Family(
    name="llama3",
    calls=CallForm(opens=("<|python_tag|>",), closes=("<|eom_id|>",), is_bare=True),
    call_text=CallText(
        opens="", before='{"name": "', between='", "parameters": ', after="}", joins="; ", closes=""
    ),
)
MISTRAL = Family(
    name="mistral",
    thinking=("[THINK]", "[/THINK]"),
    calls=CallForm(
        opens=("[TOOL_CALLS]",),
        syntax=Syntax.NAMED,
        head=Head(
            pattern=r"\s*(.+?)\s*(?:\[CALL_ID\].*)?", ends=("[ARGS]",), within=("[CALL_ID]",)
        ),
    ),
    call_text=CallText(
        opens="[TOOL_CALLS]", before="", between="[ARGS]", after="", joins="[TOOL_CALLS]", closes=""
    ),
    call_id=lambda _, number: f"{number:09d}",
)
DEEPSEEK_V3 = Family(
    name="deepseek-v3",
    thinking=_THINK,
    calls=_DEEPSEEK,
    call_text=CallText(
        opens="<｜tool▁calls▁begin｜>",
        before="<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        between="\n```json\n",
        after="\n```<｜tool▁call▁end｜>",
        joins="\n",
        closes="<｜tool▁calls▁end｜>",
    ),
)
DEEPSEEK_V31 = Family(
    name="deepseek-v3.1",
    thinking=_THINK,
    calls=CallForm(
        opens=_DEEPSEEK.opens,
        closes=_DEEPSEEK.closes,
        begins=_DEEPSEEK.begins,
        ends=_DEEPSEEK.ends,
        syntax=Syntax.NAMED,
        head=Head(pattern=r"\s*(.+?)\s*", ends=("<｜tool▁sep｜>",)),
    ),
    call_text=CallText(
        opens="<｜tool▁calls▁begin｜>",
        before="<｜tool▁call▁begin｜>",
        between="<｜tool▁sep｜>",
        after="<｜tool▁call▁end｜>",
        joins="",
        closes="<｜tool▁calls▁end｜>",
    ),
)
GLM = Family(
    name="glm",
    thinking=_THINK,
    calls=CallForm(
        opens=_TAG[:1],
        closes=_TAG[1:],
        syntax=Syntax.PARAMETERS,
        head=Head(pattern=r"\s*(.+?)\s*", ends=("\n", "<arg_key>", "</tool_call>"), is_open=True),
        parameters=Parameters(
            begins="<arg_key>",
            name_ends="</arg_key>",
            value_begins="<arg_value>",
            value_ends="</arg_value>",
        ),
    ),
)
KIMI_K2 = Family(
    name="kimi-k2",
    thinking=_THINK,
    calls=CallForm(
        opens=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
        closes=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
        begins=("<|tool_call_begin|>",),
        ends=("<|tool_call_end|>",),
        syntax=Syntax.NAMED,
        head=Head(
            pattern=r"\s*(?:functions\.)?(.+?)(?::\d+)?\s*", ends=("<|tool_call_argument_begin|>",)
        ),
    ),
    call_id=lambda name, number: f"functions.{name}:{number}",
    call_text=CallText(
        opens="<|tool_calls_section_begin|>",
        before="<|tool_call_begin|>functions.",
        between=":0<|tool_call_argument_begin|>",
        after="<|tool_call_end|>",
        joins="",
        closes="<|tool_calls_section_end|>",
    ),
)
HARMONY = Family(
    name="harmony",
    calls=CallForm(opens=(), ends=("<|call|>", "<|end|>", "<|return|>"), syntax=Syntax.NAMED),
    channels=Channels(
        begins=("<|start|>", "<|channel|>"),
        message="<|message|>",
        ends=("<|end|>", "<|return|>", "<|call|>"),
        channel=r"<\|channel\|>\s*(\w+)",
        thinking=("analysis",),
        recipient=r"to=functions\.([^\s<]+)",
        within=("<|constrain|>",),
    ),
    call_text=CallText(
        opens="",
        before="<|channel|>commentary to=functions.",
        between=" <|constrain|>json<|message|>",
        after="<|call|>",
        joins="<|start|>assistant",
        closes="",
    ),
)
GEMMA4 = Family(
    name="gemma4",
    thinking=("<|channel>thought\n", "<channel|>"),
    calls=CallForm(
        opens=("<|tool_call>",),
        closes=("<tool_call|>",),
        syntax=Syntax.FIELDS,
        head=Head(pattern=r"\s*call:(.+?)\s*", ends=("{",), is_open=True),
        string_mark='<|"|>',
    ),
)

FAMILIES = {
    family.name: family
    for family in (
        *(PLAIN, HERMES, QWEN3_CODER, SMOLLM2, LLAMA3, MISTRAL, DEEPSEEK_V3, DEEPSEEK_V31, GLM),
        *(KIMI_K2, HARMONY, GEMMA4),
    )
}

# Which text of a template or token of a vocabulary shows a family; the first that is there counts.
_SIGNS = (
    ("<|channel|>", HARMONY),
    ("<|tool_call>", GEMMA4),
    ("<|tool_calls_section_begin|>", KIMI_K2),
    ("<｜tool▁calls▁begin｜>", DEEPSEEK_V31),
    ("[TOOL_CALLS]", MISTRAL),
    ("<arg_key>", GLM),
    ("<function=", QWEN3_CODER),
    ("<tool_call>", HERMES),
    ("<|python_tag|>", LLAMA3),
    ("<think>", HERMES),
)


def family_of(template: str, tokens: Iterable[str], *, knows_tools: bool) -> Family:
    """The family that template and vocabulary show.

    A model that shows none is asked for calls as JSON where its template knows no tools.
    """
    texts = frozenset(tokens)

    def shows(sign: str) -> bool:
        return sign in template or sign in texts

    family = next((family for sign, family in _SIGNS if shows(sign)), None)
    if family is None:
        return PLAIN if knows_tools else SMOLLM2
    if family is DEEPSEEK_V31 and "```json" in template:
        family = DEEPSEEK_V3
    if family.thinking is not None and not shows(family.thinking[0].strip()):
        # A model that cannot think may well write the words.
        return replace(family, thinking=None)
    return family
