"""Grammars by llguidance: constraints compiled for one tokenizer, and remembered by tenant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from services.engine.grammar import Matcher
from services.engine.grammar_cache import GrammarCache
from services.engine.grammar_limits import at_most, states_within
from services.engine.grammar_matcher import GuidedMatcher, first_lines
from services.shared.errors import InvalidRequest, Unsupported
from services.shared.model_folder import TOKENIZER, ModelFolder
from services.shared.stream.generation import Constraint, ConstraintKind

MAX_FORCED_BYTES = 4096
"""With which all outputs may begin: the library walks through them for each mask, unlimited."""

# Between two tokens of JSON: nothing, a space, or a new line with its indent. An unbounded run
# would let a model write blanks until its tokens are used up.
JSON_WHITESPACE = r"( |\n[ \t]{0,64})"


class GrammarCompiler:
    """Makes matchers and keeps the latest grammars of each tenant. For one thread.

    Args:
        tokenizer: a tokenizer.json, read when the first constraint comes.
        vocabulary_size: columns of the model's logits.
        end_of_text_ids: tokens that end a text; a grammar allows them where it may end.
        cache_bytes: memory for grammars that are kept.
    """

    def __init__(
        self,
        tokenizer: Path,
        vocabulary_size: int,
        end_of_text_ids: frozenset[int],
        cache_bytes: int,
    ) -> None:
        self._path = tokenizer
        self._vocabulary_size = vocabulary_size
        self._end_of_text_ids = sorted(end_of_text_ids)
        self._tokenizer: LLTokenizer | None = None
        self.cache = GrammarCache(cache_bytes)

    def matcher(
        self, constraint: Constraint, generated_ids: Sequence[int], tenant: str = ""
    ) -> Matcher:
        matcher = GuidedMatcher(self._grammar(constraint, tenant).deep_copy())
        for index, token_id in enumerate(generated_ids):
            try:
                matcher.accept(token_id)
            except ValueError as error:
                raise InvalidRequest(
                    f"generated_ids[{index}] breaks the constraint, got {token_id}",
                    field=f"generated_ids[{index}]",
                ) from error
        return matcher

    def _grammar(self, constraint: Constraint, tenant: str) -> LLMatcher:
        """A matcher that is at its beginning. Its copies share its lexer, with all states."""
        known = self.cache.take(constraint, tenant)
        if known is None or _first_error(known):
            known = self._compile(constraint)
        self.cache.put(constraint, tenant, known)
        return known

    def _compile(self, constraint: Constraint) -> LLMatcher:
        """Raises InvalidRequest naming what is wrong."""
        limits = LLParserLimits(max_lexer_states=states_within(constraint), verbose_errors=False)
        try:
            notation = _notation(constraint)
        except ValueError as error:
            raise _refusal(str(error)) from error
        matcher = LLMatcher(self._loaded(), notation, log_level=0, limits=limits)
        if matcher.is_error():
            raise _refusal(matcher.get_error())
        reason = _first_error(matcher)
        if reason:
            raise _refusal(f"no text fulfils it ({first_lines(reason)})")
        at_most("bytes that are forced", len(matcher.compute_ff_bytes()), MAX_FORCED_BYTES)
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
    folder: ModelFolder, vocabulary_size: int, end_of_text_ids: frozenset[int], cache_bytes: int
) -> GrammarCompiler | None:
    """Grammars of a model folder, if it has the tokenizer that they need."""
    if not folder.has(TOKENIZER):
        return None
    return GrammarCompiler(folder.file(TOKENIZER), vocabulary_size, end_of_text_ids, cache_bytes)


def _first_error(matcher: LLMatcher) -> str:
    """Why no token can be first; a lexer that met a limit once has no other answer any more."""
    trial = matcher.deep_copy()
    trial.compute_bitmask()
    return str(trial.get_error()) if trial.is_error() else ""


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
