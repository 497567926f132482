"""Grammars by llguidance: constraints compiled for one tokenizer, and remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from services.engine.grammar import Matcher
from services.engine.grammar_limits import check_size
from services.engine.grammar_matcher import GuidedMatcher, first_lines
from services.shared.errors import InvalidRequest, Unsupported
from services.shared.model_folder import TOKENIZER, ModelFolder
from services.shared.stream.generation import Constraint, ConstraintKind

MAX_REMEMBERED = 64

# Between two tokens of JSON: nothing, a space, or a new line with its indent. An unbounded run
# would let a model write blanks until its tokens are used up.
JSON_WHITESPACE = r"( |\n[ \t]{0,64})"

# A lexer state takes 1 to 2 kB and lives as long as the grammar is remembered.
LIMITS = LLParserLimits(max_lexer_states=20_000, verbose_errors=False)


class GrammarCompiler:
    """Makes matchers and keeps the latest grammars. For one thread.

    Args:
        tokenizer: a tokenizer.json, read when the first constraint comes.
        vocabulary_size: columns of the model's logits.
        end_of_text_ids: tokens that end a text; a grammar allows them where it may end.
    """

    def __init__(
        self, tokenizer: Path, vocabulary_size: int, end_of_text_ids: frozenset[int]
    ) -> None:
        self._path = tokenizer
        self._vocabulary_size = vocabulary_size
        self._end_of_text_ids = sorted(end_of_text_ids)
        self._tokenizer: LLTokenizer | None = None
        self._compiled: OrderedDict[Constraint, LLMatcher] = OrderedDict()

    def matcher(self, constraint: Constraint, generated_ids: Sequence[int]) -> Matcher:
        matcher = GuidedMatcher(self._grammar(constraint).deep_copy())
        for index, token_id in enumerate(generated_ids):
            try:
                matcher.accept(token_id)
            except ValueError as error:
                raise InvalidRequest(
                    f"generated_ids[{index}] breaks the constraint, got {token_id}",
                    field=f"generated_ids[{index}]",
                ) from error
        return matcher

    def _grammar(self, constraint: Constraint) -> LLMatcher:
        known = self._compiled.get(constraint)
        if known is None:
            check_size(constraint)
            known = self._compile(constraint)
            self._compiled[constraint] = known
            if len(self._compiled) > MAX_REMEMBERED:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(constraint)
        return known

    def _compile(self, constraint: Constraint) -> LLMatcher:
        """A matcher that is at its beginning; raises InvalidRequest naming what is wrong."""
        try:
            notation = _notation(constraint)
        except ValueError as error:
            raise _refusal(str(error)) from error
        matcher = LLMatcher(self._loaded(), notation, log_level=0, limits=LIMITS)
        if matcher.is_error():
            raise _refusal(matcher.get_error())
        trial = matcher.deep_copy()
        trial.compute_bitmask()
        if trial.is_error():
            raise _refusal(f"no text fulfils it ({first_lines(trial.get_error())})")
        return matcher

    def _loaded(self) -> LLTokenizer:
        if self._tokenizer is None:
            try:
                self._tokenizer = LLTokenizer(
                    self._path.read_text(encoding="utf-8"),
                    n_vocab=self._vocabulary_size,
                    eos_token=self._end_of_text_ids,
                )
            except ValueError as error:
                raise Unsupported(
                    f"constraint is not supported with this model's tokenizer: {error}",
                    field="constraint",
                ) from error
        return self._tokenizer


def grammars_of(
    folder: ModelFolder, vocabulary_size: int, end_of_text_ids: frozenset[int]
) -> GrammarCompiler | None:
    """Grammars of a model folder, if it has the tokenizer that they need."""
    if not folder.has(TOKENIZER):
        return None
    return GrammarCompiler(folder.file(TOKENIZER), vocabulary_size, end_of_text_ids)


def _notation(constraint: Constraint) -> str:
    """The constraint in llguidance's own notation; raises ValueError."""
    match constraint.kind:
        case ConstraintKind.JSON_SCHEMA:
            return LLMatcher.grammar_from_json_schema(
                constraint.source,
                overrides={
                    "lenient": False,
                    "coerce_one_of": False,
                    "whitespace_pattern": JSON_WHITESPACE,
                },
            )
        case ConstraintKind.REGEX:
            return LLMatcher.grammar_from_regex(constraint.source)
        case ConstraintKind.GRAMMAR:
            return LLMatcher.grammar_from_lark(constraint.source)


def _refusal(reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"constraint cannot be compiled: {first_lines(reason)}", field="constraint"
    )
