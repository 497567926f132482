"""tokenizer.json and tokenizer_config.json from the vocabulary and merges of a GGUF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from services.launcher.bad_model_file import BadModelFile
from services.launcher.gguf_metadata import Metadata

# What comes before the merges, by `tokenizer.ggml.pre`, in the words of the tokenizers library.
# The name stands for the settings of the model's own tokenizer.json, which a GGUF does not carry.
_BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
PRE_TOKENIZERS: dict[str, dict[str, Any]] = {
    "smollm": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL],
    },
}

_CONTROL, _USER_DEFINED = 3, 4
_END_TOKENS = ("<|im_end|>", "<|endoftext|>")


@dataclass(frozen=True, kw_only=True, slots=True)
class GgufTokenizer:
    """A byte-level BPE tokenizer; `added` maps the IDs of added tokens to whether they control."""

    tokens: list[str]
    merges: list[list[str]]
    added: dict[int, bool]
    pre: str
    bos: int
    eos: int
    pad: int
    unknown: int

    @property
    def ends(self) -> list[int]:
        """IDs that end an answer: the declared one, then control tokens known to end turns."""
        named = [self.tokens.index(token) for token in _END_TOKENS if token in self.tokens]
        return [self.eos, *(id_ for id_ in named if id_ != self.eos and self.added.get(id_))]

    def json(self) -> dict[str, Any]:
        """The content of tokenizer.json."""
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [{"id": id_, **self._added_token(id_)} for id_ in self.added],
            "normalizer": None,
            "pre_tokenizer": PRE_TOKENIZERS[self.pre],
            "post_processor": None,
            "decoder": _BYTE_LEVEL,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": {token: id_ for id_, token in enumerate(self.tokens)},
                "merges": self.merges,
            },
        }

    def config_json(self, context: int) -> dict[str, Any]:
        """The content of tokenizer_config.json.

        The class is the generic one: GPT2Tokenizer would put its own pre-tokenizer in the place of
        the one in tokenizer.json.
        """
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "added_tokens_decoder": {str(id_): self._added_token(id_) for id_ in self.added},
            "bos_token": self.tokens[self.bos],
            "eos_token": self.tokens[self.eos],
            "pad_token": self.tokens[self.pad],
            "unk_token": self.tokens[self.unknown],
            "clean_up_tokenization_spaces": False,
            "model_max_length": context,
        }

    def _added_token(self, id_: int) -> dict[str, Any]:
        return {
            "content": self.tokens[id_],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": self.added[id_],
        }


def gguf_tokenizer(metadata: Metadata) -> GgufTokenizer:
    """The tokenizer that the metadata describes.

    Raises:
        BadModelFile: not a byte-level BPE whose pre-tokenizer is known, or its lists do not fit.
    """
    _check_kind(metadata)
    tokens = metadata.texts("tokenizer.ggml.tokens")
    vocabulary = set(tokens)
    if not tokens or len(vocabulary) != len(tokens):
        raise BadModelFile("tokenizer.ggml.tokens must hold tokens, none of them twice")
    eos = _token_id(metadata, "eos", len(tokens))
    return GgufTokenizer(
        tokens=tokens,
        merges=_merges(metadata.texts("tokenizer.ggml.merges"), vocabulary),
        added=_added(metadata.integers("tokenizer.ggml.token_type"), tokens),
        pre=metadata.text("tokenizer.ggml.pre"),
        bos=_token_id(metadata, "bos", len(tokens)),
        eos=eos,
        pad=_token_id(metadata, "padding", len(tokens), eos),
        unknown=_token_id(metadata, "unknown", len(tokens), eos),
    )


def _check_kind(metadata: Metadata) -> None:
    model, pre = metadata.text("tokenizer.ggml.model"), metadata.text("tokenizer.ggml.pre")
    if model != "gpt2":
        raise BadModelFile(f"tokenizer.ggml.model must be gpt2, got {model!r:.40}")
    if pre not in PRE_TOKENIZERS:
        known = ", ".join(PRE_TOKENIZERS)
        raise BadModelFile(f"tokenizer.ggml.pre must be one of {known}, got {pre!r:.40}")
    for key in ("tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_space_prefix"):
        if metadata.has(key) and metadata.flag(key):
            raise BadModelFile(f"{key} must be false")


def _merges(lines: list[str], vocabulary: set[str]) -> list[list[str]]:
    merges = [line.split(" ") for line in lines]
    for index, pair in enumerate(merges):
        if len(pair) != 2 or not {*pair, "".join(pair)} <= vocabulary:
            raise BadModelFile(
                f"tokenizer.ggml.merges[{index}] must be two tokens whose union is a token, "
                f"got {lines[index]!r:.80}"
            )
    return merges


def _added(types: list[int], tokens: list[str]) -> dict[int, bool]:
    if len(types) != len(tokens):
        raise BadModelFile(
            f"tokenizer.ggml.token_type must have {len(tokens)} values, has {len(types)}"
        )
    added = {
        id_: type_ == _CONTROL
        for id_, type_ in enumerate(types)
        if type_ in (_CONTROL, _USER_DEFINED)
    }
    for id_ in added:
        if not tokens[id_]:
            raise BadModelFile(f"tokenizer.ggml.tokens[{id_}] is a control token without text")
    return added


def _token_id(metadata: Metadata, role: str, count: int, default: int | None = None) -> int:
    key = f"tokenizer.ggml.{role}_token_id"
    if default is not None and not metadata.has(key):
        return default
    return metadata.integer(key, 0, count - 1)
