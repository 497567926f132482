"""The model's vocabulary: text to token IDs without control tokens, and the bytes of each ID."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any

import tokenizers

from services.codec.byte_table import byte_table
from services.codec.segments import may_cut, segments
from services.shared.model_folder import CONFIG, TOKENIZER, BadModelFolder, ModelFolder

GENERATION_CONFIG = "generation_config.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlToken:
    """An added token that is more than white space. The flags tell what white space it eats."""

    text: str
    index: int
    lstrip: bool
    rstrip: bool


class Tokenizer:
    """Tokens of a model folder. Immutable, so that threads may share it.

    Raises:
        BadModelFolder: tokenizer.json is broken or has what cannot be encoded piece by piece.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self._path = folder.file(TOKENIZER)
        spec = folder.json(TOKENIZER) | {"truncation": None, "padding": None}
        added = _added_tokens(spec, str(self._path))
        self._reference = self._load(spec)
        self.controls = tuple(self._control(token) for token in added if _is_control(token))
        self.control_ids = frozenset(control.index for control in self.controls)
        blanks = [token for token in added if not _is_control(token)]
        self._plain = self._load(spec | {"added_tokens": blanks, "post_processor": None})
        self._check(spec, blanks)
        self._reachable = self._reachable_pattern()
        self._may_cut = self._reachable is None and may_cut(spec | {"added_tokens": blanks})
        # Text that the vocabulary does not know becomes the unknown token, which forges nothing.
        self.forgeable_ids = self.control_ids - {_unknown_id(spec, self._reference)}
        spelled = {token["content"]: token["id"] for token in added}
        vocabulary = self._reference.get_vocab(with_added_tokens=True)
        table = byte_table(spec.get("decoder"), vocabulary, spelled)
        if table is None:
            raise self._bad("must have a byte-level or byte-fallback decoder")
        self._bytes = table
        self.vocabulary_size = len(table)
        # One object for each ID: lists that are kept then take eight bytes a token.
        self._shared_ids = tuple(range(len(table)))
        self.eos_ids = _eos_ids(folder)

    def segments(self, text: str) -> list[str]:
        """The text in parts whose IDs are together those of the whole; none if it is empty."""
        if not text:
            return []
        return list(segments(text)) if self._may_cut else [text]

    def encode_all_plainly(self, texts: Sequence[str]) -> list[list[int]]:
        """IDs of each text, which know no control token. Releases the GIL and uses all cores.

        Spelled control tokens that the vocabulary would make whole are broken after the first
        character.
        """
        parts = [self._parts(text) for text in texts]
        flat = [part for group in parts for part in group]
        # `encode` would hold the GIL for its whole duration.
        encodings = iter(self._plain.encode_batch_fast(flat, add_special_tokens=False))
        shared = self._shared_ids.__getitem__
        return [
            [*map(shared, chain.from_iterable(each.ids for each in islice(encodings, len(group))))]
            for group in parts
        ]

    def encode_plainly(self, text: str) -> list[int]:
        """IDs of one text, as above."""
        return [token for ids in self.encode_all_plainly(self.segments(text)) for token in ids]

    def encode_raw(self, text: str, *, parse_special: bool) -> list[int]:
        """IDs of text whose author owns the whole prompt, after the tokens that begin every text.

        With `parse_special` spelled control tokens become control tokens. Releases the GIL.
        """
        if parse_special:
            (encoding,) = self._reference.encode_batch_fast([text], add_special_tokens=True)
            ids: list[int] = encoding.ids
            return ids
        beginning: list[int] = self._reference.encode("", add_special_tokens=True).ids
        return [*beginning, *self.encode_plainly(text)]

    def encode_reference(self, text: str) -> list[int]:
        """IDs as the original tokenizer has them: spelled control tokens become control tokens."""
        ids: list[int] = self._reference.encode(text, add_special_tokens=False).ids
        return ids

    def spells_as_reference(self, ids: list[int]) -> bool:
        """Whether the bytes of these IDs are the text that the original tokenizer has for them."""
        text = b"".join(map(self.token_bytes, ids)).decode(errors="replace")
        original: str = self._reference.decode(ids, skip_special_tokens=False)
        return text.removeprefix(" ") == original.removeprefix(" ")

    def token_bytes(self, token: int) -> bytes:
        """Bytes that the token stands for; none for an ID beyond the vocabulary."""
        return self._bytes[token] if 0 <= token < len(self._bytes) else b""

    def _parts(self, text: str) -> list[str]:
        if self._reachable is None:
            return [text]
        cuts = [0, *(match.start() + 1 for match in self._reachable.finditer(text)), len(text)]
        return [text[start:end] for start, end in pairwise(cuts)]

    def _reachable_pattern(self) -> re.Pattern[str] | None:
        """Control tokens that plain encoding makes of their spelling, wherever they overlap."""
        texts = [
            control.text
            for control in self.controls
            if control.index in self._plain.encode(control.text, add_special_tokens=False).ids
        ]
        return re.compile(f"(?={'|'.join(map(re.escape, texts))})") if texts else None

    def _load(self, spec: Mapping[str, Any]) -> tokenizers.Tokenizer:
        try:
            return tokenizers.Tokenizer.from_str(json.dumps(spec))
        except Exception as error:  # the library raises nothing narrower
            raise self._bad(f"cannot be loaded: {error}") from error

    def _control(self, token: Mapping[str, Any]) -> ControlToken:
        text = token["content"]
        if len(text) < 2:
            raise self._bad(f"has a control token of one character, {text!r}: text may contain it")
        if token.get("single_word"):
            raise self._bad(f"has a control token with single_word, {text!r}; it must be false")
        if self._reference.token_to_id(text) != token["id"]:
            raise self._bad(f"must give {text!r} the ID {token['id']}")
        return ControlToken(
            text=text,
            index=token["id"],
            lstrip=bool(token.get("lstrip")),
            rstrip=bool(token.get("rstrip")),
        )

    def _check(self, spec: Mapping[str, Any], blanks: list[Mapping[str, Any]]) -> None:
        if _prepends_at_start_only(spec.get("pre_tokenizer")):
            raise self._bad("must not have the prepend_scheme `first`: pieces are encoded alone")
        for token in blanks:
            if self._plain.token_to_id(token["content"]) != token["id"]:
                raise self._bad(f"cannot keep the ID {token['id']} without its control tokens")

    def _bad(self, what: str) -> BadModelFolder:
        return BadModelFolder(f"{self._path} {what}")


def _added_tokens(spec: Mapping[str, Any], path: str) -> list[Mapping[str, Any]]:
    added = spec.get("added_tokens") or []
    valid = isinstance(added, list) and all(
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and isinstance(token.get("id"), int)
        for token in added
    )
    if not valid:
        raise BadModelFolder(f"{path} must list added_tokens with content and id")
    return list(added)


def _is_control(token: Mapping[str, Any]) -> bool:
    """Runs of white space are added tokens in some vocabularies, and ordinary text."""
    return not token["content"].isspace()


def _prepends_at_start_only(step: Any) -> bool:
    if not isinstance(step, dict):
        return False
    inner = step.get("pretokenizers") or []
    return step.get("prepend_scheme") == "first" or any(map(_prepends_at_start_only, inner))


def _unknown_id(spec: Mapping[str, Any], tokenizer: tokenizers.Tokenizer) -> int | None:
    model = spec.get("model") or {}
    if model.get("unk_token") is not None:
        index: int | None = tokenizer.token_to_id(model["unk_token"])
        return index
    unknown: int | None = model.get("unk_id")
    return unknown


def _eos_ids(folder: ModelFolder) -> frozenset[int]:
    """Tokens that end an answer, from both configurations: each lacks some in some models."""
    ids: set[int] = set()
    for name in (CONFIG, GENERATION_CONFIG):
        value = folder.json(name).get("eos_token_id") if folder.has(name) else None
        ids.update(value if isinstance(value, list) else [] if value is None else [value])
    return frozenset(ids)
