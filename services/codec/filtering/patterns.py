"""The filter `patterns`: words, phrases and patterns that are neither asked nor answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from services.codec.filtering.automaton import Automaton
from services.codec.filtering.content_filter import Blocked, Passage, Refused, Ruling
from services.codec.filtering.folding import folded
from services.codec.filtering.graph import MAX_BLANKS, End, Graph, TooLarge
from services.codec.filtering.matcher import GraphMatcher
from services.codec.filtering.pattern_graph import add_pattern
from services.codec.filtering.pattern_syntax import MAX_LENGTH, BadPattern
from services.codec.filtering.rules_file import BadRules, Rule, read_rules


class PatternFilter:
    """Blocks what a rule matches.

    Raises:
        BadRules: an entry cannot be used; the text names it.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        graph = Graph()
        for number, rule in enumerate(rules):
            _add(graph, number, rule)
        self._automaton = Automaton(graph)
        self._names = tuple(rule.name for rule in rules)

    def check_prompt(self, passages: Sequence[Passage]) -> Refused | None:
        for at, passage in enumerate(passages):
            for ruling in self._rulings(passage):
                if isinstance(ruling, Blocked):
                    return Refused(at, ruling.rule)
        return None

    def output_matcher(self) -> GraphMatcher:
        return GraphMatcher(self._automaton, self._names)

    def _rulings(self, passage: Passage) -> Iterator[Ruling]:
        """Up to the first that blocks."""
        matcher = self.output_matcher()
        for text in passage.texts:
            yield matcher.push(text)
            yield matcher.pause()


def load(path: Path | None) -> PatternFilter:
    """Raises BadRules."""
    if path is None:
        raise BadRules("the filter patterns needs service.content_filter.file")
    rules = read_rules(path)
    try:
        return PatternFilter(rules)
    except BadRules as error:
        raise BadRules(f"{path}: {error}") from error


def _add(graph: Graph, number: int, rule: Rule) -> None:
    end = End(number, rule.whole_words)
    for at, word in enumerate(rule.words):
        graph_phrase = _phrase(word, f"{rule.name}, words[{at}]")
        try:
            graph.add_phrase(graph_phrase, end)
        except TooLarge as error:
            raise BadRules(str(error)) from error
    for at, pattern in enumerate(rule.patterns):
        try:
            add_pattern(graph, pattern, end)
        except (BadPattern, TooLarge) as error:
            raise BadRules(f"{rule.name}, patterns[{at}] {error}") from error


def _phrase(word: str, place: str) -> str:
    phrase = " ".join(folded(word).split())
    length = len(phrase) + (MAX_BLANKS - 1) * phrase.count(" ")
    if not phrase:
        raise BadRules(f"{place} must not be empty")
    if length > MAX_LENGTH:
        raise BadRules(
            f"{place} must have at most {MAX_LENGTH} characters, {MAX_BLANKS} for each blank, "
            f"got {length}"
        )
    return phrase
