"""Patterns that cannot be used are refused with a reason; the others match as they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.codec.filtering.patterns import PatternFilter, load
from services.codec.filtering.rules_file import BadRules, Rule
from tests.codec.filtering.ruled import run


def found(pattern: str, text: str) -> bool:
    rule = Rule(name="r", patterns=(pattern,), whole_words=False)
    return run(PatternFilter([rule]).output_matcher(), [text])[1] is not None


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        (r"\d{3}-\d{2}-\d{4}", ["123-45-6789", "٣٣٣-12-1234"], ["123-456-789"]),
        ("[A-F0-9]{4}", ["beef", "BE3F"], ["beeg"]),
        ("colou?r", ["Color", "colour"], ["colouur"]),
        ("a(b|cd){2}e", ["abcde", "acdcde"], ["abe", "abcd"]),
        (r"a[^\s.]b", ["axb"], ["a b", "a.b"]),
        (r"\$\(x\)", ["$(x)"], ["x"]),
        ("[]-]x", [], []),
        ("ß{2}", ["ssss"], ["sss"]),
        ("(?:ab){0,2}c", ["c", "ababc"], ["d"]),
        (r"[\w-]@", ["a@", "-@"], [".@"]),
    ],
)
def test_a_pattern_matches_what_it_says(
    pattern: str, matches: list[str], others: list[str]
) -> None:
    if pattern == "[]-]x":
        with pytest.raises(BadRules, match="a set of nothing"):
            found(pattern, "x")
        return
    assert [text for text in matches if not found(pattern, text)] == []
    assert [text for text in others if found(pattern, text)] == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a*", r"must not have \*, which has no bound"),
        ("a+", r"must not have \+, which has no bound"),
        ("a{2,}", "must not have a repeat without a bound"),
        ("a{300}", "must have repeats of at most 256"),
        ("a{3,2}", "the least first"),
        ("(a{100}){3}", "must match at most 256 characters, got 300"),
        ("a?", "matches the empty text"),
        ("a|", "matches the empty text"),
        ("(a", r"has a \( that is not closed"),
        ("a)", r"has a \) that closes nothing"),
        ("[b-a]x", "goes down"),
        ("[a", "ends too early"),
        (r"\bx", r"must not have \\b"),
        ("(?=a)b", "must not have groups of this kind"),
        ("^a", r"must not have a bare \^"),
        ("a{1", "must not have a bare {"),
        ("(" * 40 + "a" + ")" * 40, "must nest at most 32 groups"),
        ("a" + "(" * 30 + "b{0}" + "){256}" * 30, "too many parts"),
        ("((a|b|c|d)?){200}e", "too many parts"),
    ],
)
def test_what_cannot_be_bounded_or_read_is_refused(pattern: str, why: str) -> None:
    rule = Rule(name="numbers", patterns=("x", pattern))
    with pytest.raises(BadRules, match=rf"numbers, patterns\[1\] .*{why}"):
        PatternFilter([rule])


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("r.yaml", "rules: [", "is no YAML"),
        ("r.yaml", "- a", "must have a list `rules` and nothing else"),
        ("r.yaml", "rules: []", "has no rule"),
        ("r.yaml", "rules: [a]", r"rules\[0\] must be a mapping"),
        ("r.yaml", "rules: [{name: a}]", r"rules\[0\] must have words or patterns"),
        ("r.yaml", "rules: [{name: a, words: [1]}]", r"rules\[0\].words\[0\] must be a string"),
        ("r.yaml", "rules: [{name: a, words: b}]", r"rules\[0\].words must be a list"),
        ("r.yaml", "rules: [{words: [b]}]", r"rules\[0\].name must have 1 to 64 letters"),
        ("r.yaml", "rules: [{name: a, words: [b], x: 1}]", "got x"),
        ("r.yaml", "rules: [{name: a, words: [b], whole_words: 1}]", "must be true or false"),
        ("r.yaml", "rules: [{name: a, words: ['']}]", r"a, words\[0\] must not be empty"),
        (
            "r.yaml",
            "rules: [{name: a, words: [b]}, {name: a, words: [c]}]",
            r"rules\[1\].name must be of this rule alone, got 'a'",
        ),
        ("r.txt", "# nothing\n\n", "has no rule"),
        ("r.txt", "a" * 257, "line 1, .* must have at most 256 characters"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    tmp_path: Path, name: str, text: str, why: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadRules, match=f"{name}.*{why}"):
        load(path)


def test_files_that_are_not_there_or_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRules, match="cannot be read"):
        load(tmp_path / "r.txt")
    (tmp_path / "r.txt").write_bytes(b"\xff")
    with pytest.raises(BadRules, match="cannot be read"):
        load(tmp_path / "r.txt")
    with pytest.raises(BadRules, match=r"needs service\.content_filter\.file"):
        load(None)


def test_lines_are_rules_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("# mine\n\nbad word\n  worse \n")
    assert run(load(path).output_matcher(), ["it is WORSE"]) == ("it is ", "line 4")
