"""Halves of a segment: where it is cut, and how the targets of both become one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.text.halves import halves, join


@pytest.mark.parametrize(
    ("segment", "first"),
    [
        ("When the rain had stopped, the children ran out.", "When the rain had stopped, "),
        ("Yes, when the rain had stopped; the children ran out, singing.", "Yes, when the rain had stopped; "),
        ("The rain had stopped — the children ran out.", "The rain had stopped — "),
        ('"The rain has stopped," said the oldest child.', '"The rain has stopped," '),
        ("Yes, the children ran out when the rain had stopped.", "Yes, the children ran out "),
        ("About 10,000 people came", "About 10,000 "),
    ],
)
def test_a_segment_is_cut_at_the_clause_or_the_space_nearest_its_middle(segment: str, first: str) -> None:
    parts = halves(segment)

    assert parts is not None
    assert parts[0] == first
    assert "".join(parts) == segment


@pytest.mark.parametrize("segment", ["", "word", "a supercalifragilisticexpialidocious"])
def test_what_has_no_middle_stays_whole(segment: str) -> None:
    assert halves(segment) is None


@given(st.text(alphabet="ab ,;—\n", max_size=80))
def test_halves_hold_all_of_the_segment(segment: str) -> None:
    parts = halves(segment)

    assert parts is None or ("".join(parts) == segment and all(parts))


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("雨停了。", "孩子们跑了出去。", "雨停了，孩子们跑了出去。"),
        ("雨停了，", "孩子们跑了出去。", "雨停了，孩子们跑了出去。"),
        ("大约一万", "人来了。", "大约一万人来了。"),
        ("Nitsahatra ny orana.", "Nivoaka izy.", "Nitsahatra ny orana, Nivoaka izy."),
    ],
)
def test_the_targets_of_halves_are_one_sentence(first: str, second: str, joined: str) -> None:
    assert join(first, second) == joined
