"""SmolLM2's tokenizer with the markers of a family as tokens of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

from services.codec.constraint import Vocabulary
from services.codec.output.family import Family
from services.codec.tokenizer import ControlToken
from services.shared.model_folder import TOKENIZER, ModelFolder

# Markers of families and what they begin with; <function=...> is text in all vocabularies.
_TOKEN = re.compile(
    r"<[^<>\s]*[|｜][^<>\s]*>|</?(?:think|tool_call|arg_key|arg_value)>|\[/?[A-Z_]+\]"  # noqa: RUF001  # so they are spelled
)


def family_tokenizer(family: Family, folder: ModelFolder, target: Path) -> Vocabulary:
    """Writes a tokenizer.json whose vocabulary has the family's markers."""
    spec = folder.json(TOKENIZER)
    first = max(token["id"] for token in spec["added_tokens"]) + 1
    first = max(first, len(spec["model"]["vocab"]))
    texts = sorted({text for marker in family.markers() for text in _TOKEN.findall(marker)})
    controls = [
        ControlToken(text=text, index=first + at, lstrip=False, rstrip=False)
        for at, text in enumerate(texts)
    ]
    spec["added_tokens"] += [
        {
            "id": control.index,
            "content": control.text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for control in controls
    ]
    target.write_text(json.dumps(spec), encoding="utf-8")
    return Vocabulary(size=first + len(controls), controls=controls)
