"""docs/kv.md tells another program how to compute addresses: what it says must be so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from services.engine.kv.record import HEADER_BYTES, checksum, layout_digest, sealed
from services.shared.addresses import next_address, root_address

PAGE = (Path(__file__).parents[2] / "docs" / "kv.md").read_text()


def told() -> dict[str, Any]:
    """The functions of the page's only piece of code."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102  # our own page
    return names


def test_the_code_of_the_page_gives_the_addresses_of_engine_and_router() -> None:
    page = told()
    for model, layout, salt, tenant in (("m", "l", b"", ""), ("mé", "l-1", b"\0s", "tenänt")):
        root = root_address(model, layout, salt, tenant)
        assert page["root"](model, layout, salt, tenant) == root
        for token_ids in (list(range(16)), [2**32 - 1] * 16):
            assert page["child"](root, token_ids) == next_address(root, token_ids)


def test_the_examples_of_the_page_are_true() -> None:
    root = root_address("model", "layout", b"salt", "tenant")
    first = next_address(root, range(16))
    second = next_address(first, range(16, 32))
    assert [f"`{address.hex()}`" in PAGE for address in (root, first, second)] == [True] * 3


def test_a_record_is_laid_out_as_the_page_says() -> None:
    address, layout = bytes(range(16)), layout_digest("layout")
    record = sealed(address, layout, b"payload")
    assert HEADER_BYTES == 56
    assert f"{HEADER_BYTES}-byte header" in PAGE
    header = b"TWKV" + (1).to_bytes(4, "little") + layout + address + (7).to_bytes(8, "little")
    assert record == header + checksum(address, layout, b"payload") + b"payload"
