"""What callers and models write is read in time that grows as its length does, or is refused."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]  # what Python itself reads patterns with
from typing import Any

import pytest

from services.codec.lark import Lark
from services.codec.output.families import FAMILIES
from services.codec.output.named_call import MAX_NAME
from services.codec.output.parser import MAX_HEADER, OutputParser
from services.codec.protocols.fields import Fields
from services.codec.protocols.json_body import object_of
from services.engine.grammar_limits import states_within
from services.shared.errors import ServiceError
from services.shared.stream.generation import Constraint, ConstraintKind
from tests.codec.output.reading import callables, dialect

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "services").rglob("*.py"))
ANY_NUMBER = 10**6
"""Of turns: what has no bound."""

LARGE = 2**18
SIZES_APART = 8
SLACK = 3
"""So many times slower than linear is still linear on a machine that does other things too."""

NOTICED_S = 0.02


def grows_linearly(work: Callable[[int], object], large: int = LARGE) -> None:
    """Measures CPU time at two sizes; what takes next to none is taken for linear."""

    def took(size: int) -> float:
        began = time.process_time()
        work(size)
        return time.process_time() - began

    small_s = min(took(large // SIZES_APART) for _ in range(2))
    large_s = min(took(large) for _ in range(2))
    assert large_s < max(NOTICED_S, SIZES_APART * SLACK * small_s), (small_s, large_s)


def calls_of_re(path: Path) -> Iterator[tuple[int, ast.expr]]:
    """Where a file gives a pattern to `re`, and the pattern."""
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr != "escape"
        ):
            yield node.lineno, node.args[0]


MADE_AT_RUN_TIME = {
    "services/codec/controls.py": "control tokens of a vocabulary, escaped, one or another",
    "services/codec/tokenizer.py": "control tokens of a vocabulary, escaped, one or another",
    "services/codec/lark.py": "control tokens of a vocabulary, escaped, one or another",
    "services/codec/output/alphabet.py": "markers of a family, escaped, one or another",
    "services/codec/output/markers.py": "markers of a family, escaped, one or another",
    "services/codec/output/dialect.py": "patterns of our families, for names and headers alone, "
    "which are cut at MAX_NAME and MAX_HEADER",
    "services/codec/stops.py": "first characters of stop strings, a set",
    "services/codec/filtering/json_escapes.py": "constants put together, read below",
    "services/launcher/certs/subject.py": "constants put together, for names of the command line",
}
"""Files whose patterns are not spelled in the call, and why they are harmless."""


def spelled(pattern: ast.expr) -> str | None:
    try:
        value = ast.literal_eval(pattern)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


PATTERNS = [
    (str(path.relative_to(ROOT)), line, spelled(pattern))
    for path in FILES
    for line, pattern in calls_of_re(path)
]
SPELLED = sorted({pattern for _, _, pattern in PATTERNS if pattern is not None})


def test_patterns_that_are_not_spelled_are_known() -> None:
    made = {path for path, _, pattern in PATTERNS if pattern is None}
    assert made <= MADE_AT_RUN_TIME.keys()
    assert len(SPELLED) > 15
    assert max(MAX_NAME, MAX_HEADER) <= 1024


def test_no_other_module_reads_patterns() -> None:
    """`regex` and others know more, and how to be slow."""
    others = re.compile(
        r"^\s*(?:import (?:regex|re2|fnmatch)\b|from (?:re|regex|re2|fnmatch) )", re.MULTILINE
    )
    assert not [path for path in FILES if others.search(path.read_text())]


def turns(parsed: Any, inside: int = 1) -> Iterator[int]:
    """Of each quantifier, how often it and those around it may turn together at most."""
    for operation, argument in parsed:
        name = str(operation)
        if name in {"MAX_REPEAT", "MIN_REPEAT"}:
            _, most, inner = argument
            all_turns = inside * min(int(most), ANY_NUMBER)
            yield all_turns
            yield from turns(inner, all_turns)
        elif name in {"SUBPATTERN", "ASSERT", "ASSERT_NOT"}:
            yield from turns(argument[-1], inside)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from turns(branch, inside)


@pytest.mark.parametrize("pattern", SPELLED)
def test_no_quantifier_without_bound_turns_within_another(pattern: str) -> None:
    """Nested ones are what takes exponential time."""
    assert max(turns(_parser.parse(pattern)), default=0) <= ANY_NUMBER


def test_nested_quantifiers_would_be_found() -> None:
    for pattern in ("(a+)+", "(?:a|b*)*c", "(?=(a{2,})*)"):
        assert max(turns(_parser.parse(pattern))) > ANY_NUMBER


FEEDS = (
    "a",
    " ",
    '"',
    "\\",
    '\\"',
    "\\/",
    "/",
    "#",
    "%",
    "{",
    "[",
    "<",
    "0",
    "é",
    "\n",
    "a ",
    "%5",
)


@pytest.mark.parametrize("pattern", SPELLED)
def test_patterns_search_a_long_text_in_linear_time(pattern: str) -> None:
    known = re.compile(pattern)

    def search(size: int) -> None:
        for feed in FEEDS:
            text = feed * (size // len(feed))
            for _ in known.finditer(f"{text}!"):
                pass

    grows_linearly(search, 2**14)


HOSTILE = ("a", " ", "\n", "<", "{", "[", '"', "\\", "<tool_call>", "<think>", '{"a":', "</", "`")


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_parsers_of_outputs_take_linear_time(name: str) -> None:
    """One text at once and one character after the other are both read in that time."""
    family = FAMILIES[name]
    of_model = dialect(family)
    feeds = [*HOSTILE, *family.markers()]

    def parse(size: int) -> None:
        for feed in feeds:
            parser = OutputParser(of_model, callables())
            text = of_model.alphabet.coded(feed * (size // len(feed) // len(feeds) + 1))
            for at in range(0, len(text), 256):
                parser.push(text[at : at + 256])
            parser.finish()

    grows_linearly(parse, 2**17)


@pytest.mark.parametrize("feed", ['\\"', "\\/", '"', "/", "start ", "#", "//", "%json ", "a: "])
def test_grammars_of_callers_are_looked_through_in_linear_time(feed: str) -> None:
    def look(size: int) -> None:
        source = feed * (size // len(feed))
        Lark(()).callers(source)
        try:
            states_within(Constraint(ConstraintKind.GRAMMAR, source))
        except ServiceError:
            return

    grows_linearly(look, 2**17)


@pytest.mark.parametrize(
    "feed", ["[", "{", '{"a":', '["', "\\", '"\\u00', "1", "-", "1e", " ", "[]"]
)
def test_bodies_are_read_or_refused_in_linear_time(feed: str) -> None:
    def read(size: int) -> Fields | None:
        try:
            return object_of(f'{{"a": {feed * (size // len(feed))}'.encode())
        except ServiceError:
            return None

    grows_linearly(read, 2**20)
