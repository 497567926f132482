"""Different schemas, one after the other, or one that grows: what the process comes to take.

Prints JSON: how many were answered, how many are kept, and by how much memory grew after the first.

Use: python -m tests.engine.schema_flood {flood,grow} MODEL COUNT
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np

from services.engine.grammar import Matcher
from services.engine.grammar_compiler import GrammarCompiler
from services.shared.errors import InvalidRequest
from services.shared.model_folder import ModelFolder
from tests.engine.grammar_bed import compiler, regex, schema

WARM = 200
LONG, TOKENS = 10, 40
"""One schema in so many has outputs of so many tokens."""


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def write(matcher: Matcher, tokens: int, choose: random.Random) -> bool:
    """Accepts tokens drawn from those that are allowed; False where the matcher gives up."""
    try:
        for _ in range(tokens):
            allowed = matcher.allowed()
            if matcher.complete:
                return True
            bits = np.unpackbits(np.frombuffer(allowed, np.uint8), bitorder="little")
            matcher.accept(int(choose.choice(np.flatnonzero(bits))))
    except InvalidRequest:
        return False
    return True


def flood(grammars: GrammarCompiler, count: int, choose: random.Random) -> tuple[int, int]:
    answered = before = 0
    for number in range(count):
        if number == WARM:
            before = resident_bytes()
        text = {"type": "string", "maxLength": 2000 + number}
        properties = {f"k{number}": text, "other": {"type": "integer"}}
        asked = schema({"type": "object", "properties": properties, "required": [*properties]})
        matcher = grammars.matcher(asked, [], f"tenant {number % 3}")
        answered += write(matcher, 1 if number % LONG else TOKENS, choose)
    return answered, resident_bytes() - before


def grow(grammars: GrammarCompiler, wide: int, choose: random.Random) -> tuple[int, int]:
    parts = (f"(.|\\n){{{31 * at + 500},{57 * at + 9000}}}" for at in range(wide))
    matcher = grammars.matcher(regex("|".join(parts)), [])
    before = resident_bytes()
    answered = write(matcher, 500, choose)
    return answered, resident_bytes() - before


WAYS = {"flood": flood, "grow": grow}


def main() -> None:
    way, model, count = sys.argv[1:]
    grammars = compiler(ModelFolder(Path(model)))
    choose = random.Random(7)  # noqa: S311  # a test's choice
    answered, grown = WAYS[way](grammars, int(count), choose)
    figures = {"answered": answered, "kept": len(grammars.cache), "grown_bytes": grown}
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    main()
