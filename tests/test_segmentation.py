"""Texts into sentences and back: what stands between them stays, nothing is lost, long ones are cut well."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.text.long_sentences import split_long
from function.text.pieces import join
from function.text.segmentation import has_nothing_to_translate, split
from tests.paths import CORPORA, SHARED

TEXTS = st.text(
    st.one_of(
        st.sampled_from(
            "aB.!?…,;: \t\n\r\f\v\u2028\u3000-*#>()[]1 9\"'“”。你好😆❤\ufe0f\u200d`@/{}<>%&\ud83d\udc00\x85"
        ),
        st.characters(),
    ),
    max_size=200,
)


def sentences(text: str, *, unwrap: bool = False) -> list[str]:
    return [piece.sentence for piece in split(text, unwrap=unwrap) if piece.translatable]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello world. How are you?", ["Hello world.", "How are you?"]),
        ("This is Dr. Smith. He paid $3.50 at 3 p.m. on Jan. 5th.", None),
        ("I live in St. Louis. Prof. Li et al. wrote it. J. K. Rowling, too.", None),
        ("The U.S. Army came. It was e.g. in the U.S. in 1918.", None),
        ("Mr. and Mrs. Jones vs. No. 5. See Fig. 3.", ["Mr. and Mrs. Jones vs. No. 5.", "See Fig. 3."]),
        ("Wait... what? He left.", ["Wait... what?", "He left."]),
        ('"Really?" he asked. "Yes." She left.', ['"Really?" he asked.', '"Yes."', "She left."]),
        ("Visit https://a.com/x.?y=1. Then go.", ["Visit https://a.com/x.?y=1.", "Then go."]),
        ("Version 2.200.112 is out. Use `a. B` now.", ["Version 2.200.112 is out.", "Use `a. B` now."]),
        ("Use System.Out to print. Yahoo! is a company.", ["Use System.Out to print.", "Yahoo! is a company."]),
        ("Haha yes… 😆 I guess we will see.", ["Haha yes…", "I guess we will see."]),
        ("I ❤️ New York", ["I ❤️ New York"]),
        ("Hello!How are you?", ["Hello!", "How are you?"]),
        ("你好。Good morning. 再见！", ["Good morning."]),
        ("Name\tAge  \tCity. Town", ["Name", "Age", "City.", "Town"]),
        ("A sentence\nover two lines", ["A sentence", "over two lines"]),
    ],
)
def test_sentences_of_a_line(text: str, expected: list[str] | None) -> None:
    found = sentences(text)

    if expected is None:  # as many as there are capitals after a full stop that is none of an abbreviation
        assert len(found) == text.count(". He") + text.count(". Prof") + text.count(". J.") + text.count(". It") + 1
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("  - Item one.\r\n\r\n\t* b)  next   ", ["  - ", "\r\n\r\n\t* b)  ", "   "]),
        ("# Heading\f> quote\u2028(a) first", ["# ", "\f> ", "\u2028(a) "]),
        ("12. Twelve. 13. Thirteen.", ["12. ", " 13. "]),
        ("- [ ] buy milk", ["- [ ] "]),
        ("One.  Two.\n", ["  ", "\n"]),
        ("2026\n---\n*\n", ["2026\n---\n*\n"]),
    ],
)
def test_what_is_no_sentence_stays(text: str, kept: list[str]) -> None:
    assert [piece.text for piece in split(text) if not piece.translatable] == kept


def test_initials_and_years_are_no_list_markers() -> None:
    assert sentences("I. Newton was here") == ["I. Newton was here"]
    assert sentences("3.5 million people came") == ["3.5 million people came"]


def test_hard_wrapped_lines_are_one_paragraph_when_asked_for() -> None:
    text = (
        "Heading\n"
        "This paragraph was wrapped by an editor at some margin\n"
        "so that sentences go over its lines. Another one starts\n"
        "Here, too.\n"
        "\n"
        "- an item that goes\n"
        "- another one\n"
    )

    assert sentences(text, unwrap=True) == [
        "Heading",
        "This paragraph was wrapped by an editor at some margin so that sentences go over its lines.",
        "Another one starts Here, too.",
        "an item that goes",
        "another one",
    ]
    assert len(sentences(text)) == 7


def test_spaces_between_sentences_go_only_where_both_became_chinese() -> None:
    pieces = split("One. Two.  Three.\nFour. Five.")

    assert join(pieces, ["一。", "二。", "三。", "四。", "五。"]) == "一。二。三。\n四。五。"
    assert join(pieces, ["一。", "Two.", "三。", "四。", "OK."]) == "一。 Two.  三。\n四。 OK."


def test_a_missing_or_surplus_translation_is_refused() -> None:
    pieces = split("One. Two.")

    for translations in (["一。"], ["一。", "二。", "三。"]):
        with pytest.raises(ValueError, match="one translation"):
            join(pieces, translations)


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        *(
            (text, True)
            for text in ("", " ", "\n\t", "-", "3.14", "…", "😆", "👩‍👩‍👧 🎉", "https://x.org/a", "@user", "a@b.com")
        ),
        *(
            (text, True)
            for text in ("你好", "你好！", "NASA 是什么", "我喜欢用 Python 写程序", "`code`", "{name}", "%s: %d")
        ),
        *((text, False) for text in ("a", "Hello", "Hello 你好", "see https://x.org", "USB", "IE11", "Привет", "é")),
    ],
)
def test_what_has_nothing_to_translate(text: str, nothing: bool) -> None:
    assert has_nothing_to_translate(text) is nothing
    assert (sentences(text) == []) is nothing


@given(TEXTS, st.booleans())
def test_pieces_joined_are_the_text(text: str, unwrap: bool) -> None:
    pieces = split(text, unwrap=unwrap)

    assert "".join(piece.text for piece in pieces) == text
    assert join(pieces, [piece.text for piece in pieces if piece.translatable]) == text
    assert all(piece.text.strip() == piece.text != "" for piece in pieces if piece.translatable)


@given(TEXTS, st.sampled_from(["译文。", "x", "“好”", ""]))
def test_lines_stay_lines(text: str, translation: str) -> None:
    pieces = split(text)

    translated = join(pieces, [translation for piece in pieces if piece.translatable])

    assert len(translated.splitlines()) <= len(text.splitlines())
    if translation:
        assert [
            line[len(line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")) :] for line in translated.splitlines(True)
        ] == [line[len(line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")) :] for line in text.splitlines(True)]


@pytest.mark.parametrize("name", CORPORA)
def test_real_texts_come_back_whole(name: str) -> None:
    path = SHARED / name
    if not path.exists():
        pytest.skip("the shared evaluation texts are not here")
    text = path.read_text("utf-8")[:100_000]
    pieces = split(text)

    assert "".join(piece.text for piece in pieces) == text
    assert sum(piece.translatable for piece in pieces) >= len(text.split("\n")) * 0.9


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog, and then it runs away; " * 1500,
        "word " * 20_000,
        "x" * 100_000,
        "你好" * 50_000,
        "👩‍👩‍👧" * 20_000,
        " " * 100_000,
    ],
)
def test_a_long_sentence_is_cut_into_parts_that_fit_with_few_questions(text: str) -> None:
    questions: list[int] = []

    def fits(part: str) -> bool:
        questions.append(len(part))
        return len(part) <= 1500

    parts = split_long(text, fits)

    assert "".join(parts) == text
    assert max(map(len, parts)) <= 1500
    assert len(questions) < 2 * len(parts)
    assert len(parts) <= 3 * len(text) / 1500


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two three four five; six seven eight nine, ten eleven", "one two three four five; "),
        ("one two three four five, six seven eight nine ten", "one two three four five, "),
        ("one two three four five and six seven eight nine ten", "one two three four five "),
        ("one two three four five six seven eight nine ten", "one two three four five "),
        ("e\u0301" * 15, "e\u0301" * 8),
        ("👩‍👩‍👧" * 9, "👩‍👩‍👧" * 5),
        ("🇨🇳" * 11, "🇨🇳" * 6),
    ],
)
def test_a_long_sentence_is_cut_at_the_best_place(text: str, first: str) -> None:
    parts = split_long(text, lambda part: len(part) < len(text))

    assert parts == [first, text[len(first) :]]


@given(st.text(max_size=80), st.integers(1, 20))
def test_parts_of_a_long_sentence_joined_are_the_sentence(text: str, limit: int) -> None:
    parts = split_long(text, lambda part: len(part) <= limit)

    assert "".join(parts) == text
    assert all(len(part) <= limit for part in parts)
