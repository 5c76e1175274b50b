"""Reading evaluation data: which columns count, what is refused with what words, and the set that is shipped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from model_pack.dataset import EVALSET, Segment, base_code, read_text_pair, read_tsv
from model_pack.errors import ModelPackError
from tests.paths import STARTER, held_out


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


@pytest.mark.parametrize("name", ["dev", "test_docs", "test_tatoeba"])
def test_the_starters_sets_are_read_by_language_although_their_source_says_where_from(name: str) -> None:
    segments = read_tsv(STARTER / "eval" / f"{name}.tsv", "en", "zh-Hans")

    assert segments == [Segment(row["id"], row["en"], row["zh"], None) for row in held_out(name)]


def test_columns_have_plain_names_too(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.tsv", "note\tcategory\treference\tid\tsource\nx\thome\t早。\tone\tMorning.\n\t\t\ttwo\tNo.\n"
    )

    assert read_tsv(path) == [Segment("one", "Morning.", "早。", "home"), Segment("two", "No.", None, None)]


def test_the_languages_name_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "en\tde\tmg\nGood.\tGut.\tTsara.\n")

    assert read_tsv(path, "de-AT", "mg") == [Segment("2", "Gut.", "Tsara.", None)]
    assert read_tsv(path, "EN", "fr") == [Segment("2", "Good.", None, None)]


def test_line_numbers_serve_as_ids_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "source\none\n\nthree\n\n")

    assert [(segment.id, segment.source) for segment in read_tsv(path)] == [("2", "one"), ("4", "three")]


def test_quotes_and_line_separators_are_characters(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 'id\tsource\na\t"Yes\nb\t""No"" he\u2028said\x85"\n')

    assert [segment.source for segment in read_tsv(path)] == ['"Yes', '""No"" he\u2028said\x85"']


def test_files_of_windows_programs_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b"\xef\xbb\xbfID\tEN\tZH\r\na\tYes.\t\xe6\x98\xaf\xe3\x80\x82\r\n")

    assert read_tsv(path) == [Segment("a", "Yes.", "是。", None)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "a.tsv is empty: the first line must name the columns"),
        (b"id\tsource\n\n", "a.tsv is empty: it has a header and no rows"),
        (b"id\tsource\na\tcaf\xe9\n", "a.tsv is not UTF-8 (byte 15)"),
        (
            b"id\ttext\tzh\na\tYes.\t\xe6\x98\xaf\n",
            "no column named 'en' or 'source' for the sentences to translate; its columns are 'id', 'text', 'zh'",
        ),
        (b"source\tid\tsource\nYes.\ta\tYes.\n", "more than one column named 'source'"),
        (b"id\tsource\na\tYes.\nb\tNo.\tperhaps\n", "a.tsv, line 3, has 3 fields and the header 2"),
        (b"id\tsource\n\nb\n", "a.tsv, line 3, has 1 fields and the header 2"),
        (b"id\tsource\n\tYes.\n", "a row without an id"),
        (b"id\tsource\na\t1\nb\t2\na\t3\n", "the id 'a' stands in more than one row; ids"),
        (b"id\tsource\na\t1\nb\t2\na\t3\nb\t4\n", "the id 'a' stands in more than one row, as do 1 more; ids"),
        (b"id\tsource\na\t" + b"x" * 200_000, "a.tsv, line 2, cannot be read: field larger than"),
    ],
)
def test_a_table_that_could_be_misread_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(ModelPackError) as refused:
        read_tsv(write(tmp_path / "a.tsv", content))

    assert words in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelPackError, match=r"there is no file .*/a\.tsv"):
        read_tsv(tmp_path / "a.tsv")
    with pytest.raises(ModelPackError, match="cannot be read: Is a directory"):
        read_tsv(tmp_path)


def test_text_files_give_a_segment_a_line(tmp_path: Path) -> None:
    source = write(tmp_path / "a.en", "One.\r\nTwo,\u2028three.\n\nFive.\n")
    reference = write(tmp_path / "a.zh", "一。\n二、三。\n\n")

    assert read_text_pair(source, None) == [
        Segment("1", "One.", None, None),
        Segment("2", "Two,\u2028three.", None, None),
        Segment("3", "", None, None),
        Segment("4", "Five.", None, None),
    ]
    write(reference, "一。\n二、三。\n\n五。")
    assert [segment.reference for segment in read_text_pair(source, reference)] == ["一。", "二、三。", None, "五。"]


def test_text_files_of_different_lengths_are_refused(tmp_path: Path) -> None:
    source, reference = write(tmp_path / "a.en", "One.\nTwo.\nThree.\n"), write(tmp_path / "a.zh", "一。\n二。")

    with pytest.raises(ModelPackError, match=r"a\.en has 3 lines and .*a\.zh has 2:"):
        read_text_pair(source, reference)


def test_text_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelPackError, match=r"a\.en is empty: it must have a sentence a line"):
        read_text_pair(write(tmp_path / "a.en", ""), None)
    with pytest.raises(ModelPackError, match=r"a\.en is not UTF-8"):
        read_text_pair(write(tmp_path / "a.en", b"\xff\xfe"), None)
    with pytest.raises(ModelPackError, match=r"there is no file .*a\.zh"):
        read_text_pair(write(tmp_path / "a.en", "One."), tmp_path / "a.zh")


def test_base_code() -> None:
    assert [base_code(code) for code in ("zh-Hans", "ZH", "en", "pt-BR")] == ["zh", "zh", "en", "pt"]


def test_the_shipped_set_is_well_formed() -> None:
    segments = read_tsv(EVALSET)

    assert len({segment.id for segment in segments}) == len(segments) >= 60
    assert len({segment.source.casefold() for segment in segments}) == len(segments)
    assert all(segment.source == segment.source.strip() and segment.source for segment in segments)
    counts = Counter(segment.category for segment in segments)
    assert set(counts) == {
        "everyday",
        "technology",
        "long",
        "numbers-dates",
        "names",
        "questions",
        "headlines",
        "dialogue",
        "lists",
        "punctuation",
    }
    assert min(counts.values()) >= 6
    assert all(segment.id.startswith(f"{segment.category}-") for segment in segments)
    assert all(25 <= len(s.source.split()) <= 60 for s in segments if s.category == "long")


def test_the_shipped_set_is_of_our_own_writing() -> None:
    """None of its sentences stands in the sets that the starter is measured on."""
    others = {row["en"].casefold() for name in ("dev", "test_docs", "test_tatoeba") for row in held_out(name)}

    assert not {segment.source.casefold() for segment in read_tsv(EVALSET)} & others
