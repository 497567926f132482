"""Any `data` of the fragments make the record."""

from __future__ import annotations

from itertools import combinations

import pytest

from services.engine.kv.stores.erasure_code import ErasureCode, NoCode
from tests.engine.kv.stores.bed import record_of


def test_any_four_of_six_make_the_record() -> None:
    code, record = ErasureCode(4, 2), record_of(1)
    fragments = code.split(record)
    assert len(fragments) == 6
    for kept in combinations(fragments, 4):
        assert code.joined(kept) == record
        assert code.joined(kept[::-1]) == record


@pytest.mark.parametrize(("data", "parity"), [(1, 1), (2, 1), (1, 8), (16, 8), (3, 5)])
@pytest.mark.parametrize("size", [1, 63, 64, 4097, 100_000])
def test_the_last_fragments_make_records_of_any_size(data: int, parity: int, size: int) -> None:
    code, record = ErasureCode(data, parity), bytes(range(256)) * (size // 256 + 1)
    assert code.joined(code.split(record[:size])[-data:]) == record[:size]


def test_equal_records_have_equal_fragments() -> None:
    assert ErasureCode(4, 2).split(record_of(1)) == ErasureCode(4, 2).split(
        memoryview(bytearray(record_of(1)))
    )


def test_too_few_or_strange_fragments_are_refused() -> None:
    code = ErasureCode(4, 2)
    for fragments in (code.split(b"record")[:3], [b"strange" * 20] * 4, [b""] * 4, []):
        with pytest.raises(ValueError, match=r"ragment"):
            code.joined(fragments)


def test_numbers_that_no_code_has_are_refused() -> None:
    with pytest.raises(NoCode, match=r"200\+60"):
        ErasureCode(200, 60)
