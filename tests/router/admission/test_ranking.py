"""Keys in the order of their numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.router.admission.ranking import Ranking

acts = st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.integers(0, 3)))


@given(acts)
def test_the_least_is_first_and_of_equals_the_one_that_came_first(
    acts: list[tuple[str, int | None]],
) -> None:
    ranking: Ranking[str] = Ranking()
    known: dict[str, int] = {}  # in the order of coming
    for key, rank in acts:
        if rank is None:
            ranking.remove(key)
            known.pop(key, None)
        else:
            ranking.place(key, rank)
            known[key] = rank
        expected = sorted(known, key=known.__getitem__)
        assert list(ranking) == expected
        assert ranking.first() == (expected[0] if expected else None)
        assert ranking.last() == (expected[-1] if expected else None)
        assert [ranking[key] for key in expected] == [known[key] for key in expected]
        assert (len(ranking), "a" in ranking) == (len(known), "a" in known)
        assert ranking.get("a", 9) == known.get("a", 9)
        assert ranking.up_to(1) == sum(rank <= 1 for rank in known.values())
        assert ranking.sample(3, 9) == expected[:3]
        assert ranking.sample(5, 2) == expected[:5:3]
