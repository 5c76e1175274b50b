"""Which script a text is in, on characters and on human translations."""

from __future__ import annotations

from pathlib import Path

import pytest

from function.text.script import Script, is_in_script, script_of
from tests.paths import SHARED, held_out

NTREX = SHARED / "eval" / "ntrex128"
CORPORA: list[tuple[Path, Script]] = [
    (NTREX / "newstest2019-ref.zho-CN.txt", "Hans"),
    (NTREX / "newstest2019-ref.zho-TW.txt", "Hant"),
    (SHARED / "eval" / "opus-mt-en-zh-outputs" / "flores-dev.zh", "Hans"),
]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("这个问题没有答案。", "Hans"),
        ("這個問題沒有答案。", "Hant"),
        ("早安。", None),
        ("Hello 123", None),
        ("", None),
        ("这這", None),
        ("这个问题来自臺灣的張先生。", "Hans"),
    ],
)
def test_script_of_a_text(text: str, script: Script | None) -> None:
    assert script_of(text) == script


def test_a_text_in_the_other_script_is_found_and_a_text_without_telling_characters_passes_for_both() -> None:
    assert is_in_script("这个问题没有答案。", "Hans")
    assert not is_in_script("这个问题没有答案。", "Hant")
    assert is_in_script("這個問題沒有答案。", "Hant")
    assert not is_in_script("這個問題沒有答案。", "Hans")
    assert is_in_script("早安。", "Hans")
    assert is_in_script("早安。", "Hant")


def test_one_name_in_the_other_script_is_tolerated_in_a_long_text_and_no_more() -> None:
    text = "这个问题来自张先生，我们还没有时间给他写一个详细的说明。"

    assert is_in_script(text + "（張）", "Hans")
    assert not is_in_script(text + "這個問題沒有", "Hans")


def test_characters_that_both_scripts_write_tell_nothing() -> None:
    assert script_of("群台后面里只干发余松丑占秘峰床雇") is None


@pytest.mark.parametrize(("path", "script"), CORPORA, ids=lambda value: getattr(value, "name", value))
def test_human_translations_are_in_their_script_and_not_in_the_other(path: Path, script: Script) -> None:
    if not path.exists():
        pytest.skip("evaluation text is not here")
    other: Script = "Hant" if script == "Hans" else "Hans"
    lines = path.read_text("utf-8").splitlines()

    assert sum(not is_in_script(line, script) for line in lines) < 0.005 * len(lines)
    assert sum(is_in_script(line, other) for line in lines) < 0.03 * len(lines)


def test_the_starters_technical_references_are_simplified() -> None:
    rows = held_out("test_docs")

    assert sum(not is_in_script(row["zh"], "Hans") for row in rows) <= 2
