from __future__ import annotations

import re
from typing import Any

import jinja2
import pytest

from services.codec.sandbox import Refused, Sandbox, TooMuchWork
from services.codec.template import LOAD_BUDGET


def render(source: str, **variables: Any) -> str:
    sandbox = Sandbox()
    with sandbox.budget(LOAD_BUDGET):
        return sandbox.from_string(source).render(variables)


ESCAPES = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__']['__mro__'] }}",
    "{{ (''|attr('__class__')).__mro__ }}",
    "{{ ''|attr('__class__')|attr('__base__') }}",
    "{{ [''] | map(attribute='__class__') | list }}",
    "{{ '{0.__class__.__mro__}'.format('') }}",
    "{{ '{x.__class__}'.format_map({'x': ''}) }}",
    "{{ ('{0.__class__}'|attr('format'))('') }}",
    "{{ '{0.__class__}'|format('') }}",
    "{{ range.__globals__ }}",
    "{{ raise_exception.__globals__['__builtins__'] }}",
    "{{ strftime_now.__code__.co_consts }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ self._TemplateReference__context.environment }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ lipsum.__globals__['os'] }}",
    "{{ joiner.__init__.__globals__ }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os }}",
    "{% extends '/etc/passwd' %}",
    "{{ messages.append(1) }}",
    "{{ messages.clear() }}",
    "{% set ns = namespace(__call__=1) %}{{ ns.__call__ }}",
    "{% set ns = namespace() %}{% set ns.__class__ = 1 %}{{ ns }}",
    "{% macro m() %}{{ caller.__globals__ }}{% endmacro %}{% call m() %}{% endcall %}",
    "{{ (messages|map('upper')).gi_frame }}",
    "{{ tojson.__self__ }}{{ environment }}",
]


@pytest.mark.parametrize("source", ESCAPES)
def test_escape_is_refused_or_harmless(source: str) -> None:
    messages = ["x"]
    try:
        rendered = render(source, messages=messages)
    except (jinja2.TemplateError, TypeError):
        rendered = ""
    assert not re.search(r"class|object|function|module|root:|uid=|built|Environment", rendered)
    assert messages == ["x"]


DOUBLED = "{% set n = namespace(s=START) %}{% for i in range(60) %}STEP{% endfor %}{{ n.s }}"
BOMBS = [
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{% for i in range(100000) if range(100000)|select|list|length == 3 %}{% endfor %}",
    "{% for x in [1,2] recursive %}{{ loop([1,2]) if loop.depth < 60 }}{% endfor %}",
    "{% macro m(n) %}{{ m(n-1) ~ m(n-1) if n }}{% endmacro %}{{ m(60) }}",
    DOUBLED.replace("START", "'ab'").replace("STEP", "{% set n.s = n.s + n.s %}"),
    DOUBLED.replace("START", "'ab'").replace("STEP", "{% set n.s = n.s ~ n.s %}"),
    DOUBLED.replace("START", "['ab']").replace("STEP", "{% set n.s = [n.s, n.s] %}"),
    DOUBLED.replace("START", "'a'").replace(
        "STEP", "{% set x %}{{ n.s }}{{ n.s }}{% endset %}{% set n.s = x %}"
    ),
    DOUBLED.replace("START", "2").replace("STEP", "{% set n.s = n.s * n.s %}"),
    "{{ 'x' * 10000000000 }}",
    "{{ ['x'] * 10000000000 }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{{ 'x'|center(10000000000) }}",
    "{{ 'x'.ljust(10000000000) }}",
    "{{ '%10000000000d' % 1 }}",
    "{{ '%*d' % (10000000000, 1) }}",
    "{{ '{:>10000000000}'.format(1) }}",
    "{{ '{:>{}}'.format(1, 10000000000) }}",
    "{{ ('x' * 1000000).replace('x', 'y' * 1000000) }}",
    "{{ ('x' * 1000000)|replace('x', 'y' * 1000000) }}",
    "{{ (['x' * 1000000] * 100000)|join|length }}",
    "{{ range(100000)|map('upper')|join('x' * 1000000)|length }}",
    "{{ range(100000)|list|tojson(indent=1000000)|length }}",
]


@pytest.mark.parametrize("source", BOMBS)
def test_bomb_ends_within_the_budget(source: str) -> None:
    with pytest.raises(TooMuchWork):
        render(source)


def test_endless_recursion_ends() -> None:
    with pytest.raises(RecursionError):
        render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")


FEATURES = [
    ("{%- for m in 'ab' %}\n  {%- if m == 'b' %}{% break %}{% endif %}\n{{ m }}{% endfor %}", "a"),
    ("{% generation %}x{% endgeneration %}", "x"),
    ("{{ {'b': 1, 'a': ['<é>', none]}|tojson }}", '{"b": 1, "a": ["<é>", null]}'),
    ("{{ [1]|tojson(indent=2) }}", "[\n  1\n]"),
    ("{% set n = namespace(x=1) %}{% for i in range(3) %}{% set n.x = n.x + i %}{% endfor %}"
     "{{ n.x }}", "4"),
    ("{{ 'a' ~ 1 ~ none ~ missing }}", "a1None"),
    ("{{ [{'r': 1}, {'r': 2}]|selectattr('r', 'equalto', 2)|map(attribute='r')|join(',') }}", "2"),
    ("{{ '%05.2f' % 3.14159 }} {{ '{:>4}'.format(1) }} {{ '%s-%s'|format(1, 2) }}",
     "03.14    1 1-2"),
    ("{{ 1234567|string ~ 1234567|tojson }}", "12345671234567"),
    ("{{ 'a b'.split(' ')[::-1]|join('x') }}", "bxa"),
    ("{{ dict(a=1).items()|list }}", "[('a', 1)]"),
    ("{{ {'a': 1}|dictsort }}{{ [3, 1]|sort|first }}", "[('a', 1)]1"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), FEATURES)
def test_what_chat_templates_use_works(source: str, expected: str) -> None:
    assert render(source) == expected


def test_date_is_written_in_the_form_asked_for() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", render("{{ strftime_now('%Y-%m-%d') }}"))


def test_template_can_refuse() -> None:
    with pytest.raises(Refused, match="roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")
