"""The filter and the rules of the page on filters do what the page says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from services.codec.filtering.patterns import load
from services.codec.filtering.settings import ContentFilterSettings
from tests.codec.filtering.plugins import installed
from tests.codec.filtering.ruled import cut, run
from tests.codec_bed import MODEL, BedMaker

PAGE = (Path(__file__).parents[3] / "docs/filters.md").read_text()


def block(language: str) -> str:
    found = re.search(f"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


async def test_the_filter_of_the_page_can_be_installed_and_used(
    beds: BedMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_filters.py").write_text(block("python"))
    point = re.search(r'(\S+) = "(\S+)"', block("toml"))
    assert point is not None
    monkeypatch.syspath_prepend(installed(tmp_path, **{point[1]: point[2]}))
    wanted = ContentFilterSettings(name=point[1])

    async with beds.bed(
        beds.engine(beds.says("Listen: STOP IT. NOW, ALL OF YOU")),
        lambda settings: replace(settings, content_filter=wanted),
    ) as bed:
        create: Any = bed.openai.chat.completions.create
        answer = await create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(openai.BadRequestError, match=r"messages\[0\] was refused"):
            await create(model=MODEL, messages=[{"role": "user", "content": "HI"}])
    assert answer.choices[0].message.content == "Listen: STOP IT. NOW, ALL OF YOU"
    assert answer.choices[0].finish_reason == "stop"


def test_the_matcher_of_the_page_does_not_depend_on_pieces() -> None:
    names: dict[str, Any] = {}
    exec(block("python"), names)  # noqa: S102 the page's own code
    text = "so LOUD, so VERYLOUD"
    for at in range(len(text)):
        matcher = names["load"](None).output_matcher()
        assert run(matcher, cut(text, [at, at + 2])) == ("so LOUD, so ", "shouting")


def test_the_rules_of_the_page_block_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(block("yaml"))
    rules = load(path)
    for text, rule in [
        ("a DAMNED fool", "curses"),
        ("c++ it is", "curses"),
        ("x1234 5678 9012 3456", "card numbers"),
        ("a fool", None),
    ]:
        assert run(rules.output_matcher(), [text])[1] == rule
