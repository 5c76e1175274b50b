"""Translations that went wrong are found, in published outputs and one by one; good ones are left alone."""

from __future__ import annotations

import json
import random
import time
from itertools import chain
from pathlib import Path

import pytest

from function.text.guard import Problem, inspect
from tests.paths import ROOT, SHARED, held_out

LABELS = ROOT / "tests" / "data" / "guard"
EVAL = SHARED / "eval"
OUTPUTS = EVAL / "opus-mt-en-zh-outputs"

SENTENCE = "The museum on the hill opens at nine in the morning and closes at five in the afternoon."
TRANSLATION = "山上的博物馆早上九点开门，下午五点关门。"


def lines(path: Path) -> list[str]:
    if not path.exists():
        pytest.skip("the evaluation text is not here")
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def found(source: Path, target: Path) -> dict[int, Problem]:
    """The problems of two files' lines, by line number."""
    pairs = zip(lines(source), lines(target), strict=True)
    problems = {number: inspect(english, chinese) for number, (english, chinese) in enumerate(pairs, start=1)}
    return {number: problem for number, problem in problems.items() if problem}


@pytest.mark.parametrize("system", ["opusmt", "argos"])
def test_problems_of_published_outputs_are_found_and_good_lines_left_alone(system: str) -> None:
    labels = json.loads((LABELS / f"flores-dev-{system}.json").read_text(encoding="utf-8"))
    problems = found(OUTPUTS / "flores-dev.en", OUTPUTS / f"flores-dev.{system}.zh")
    good = set(range(1, 998)).difference(labels["early_stop"], labels["loop"], labels["omission"])

    for kind in (Problem.EARLY_STOP, Problem.LOOP):
        recall = sum(problems.get(number) == kind for number in labels[kind]) / len(labels[kind])
        assert recall >= 0.9, f"{kind}: {recall:.0%} of {len(labels[kind])} found"
    assert len(good & problems.keys()) <= 0.02 * len(good)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("opus-mt-en-zh-outputs/flores-dev.en", "opus-mt-en-zh-outputs/flores-dev.zh"),
        ("opus-mt-en-zh-outputs/flores-dev.en", "opus-mt-en-zh-outputs/flores-dev.google.zh"),
        ("ntrex128/newstest2019-src.eng.txt", "ntrex128/newstest2019-ref.zho-CN.txt"),
        ("ntrex128/newstest2019-src.eng.txt", "ntrex128/newstest2019-ref.zho-TW.txt"),
        ("tico19/tico19-test.en", "tico19/tico19-test.zh"),
    ],
)
def test_good_translations_are_left_alone(source: str, target: str) -> None:
    assert len(found(EVAL / source, EVAL / target)) <= 0.01 * len(lines(EVAL / source))


def test_the_starters_human_translations_are_left_alone() -> None:
    rows = list(chain.from_iterable(held_out(name) for name in ("test_tatoeba", "test_docs", "dev")))

    assert sum(inspect(row["en"], row["zh"]) is not None for row in rows) <= 0.005 * len(rows)


@pytest.mark.parametrize(
    ("source", "target", "problem"),
    [
        ("Good morning.", "", Problem.EMPTY),
        ("Good morning.", "。", Problem.EMPTY),
        ("Tap Sign out.", "点点点点点点点点", Problem.LOOP),
        ("Hello", "你好你好你好你好", Problem.LOOP),
        ("Good morning.", "早上好。早上好！早上好。早上好！", Problem.LOOP),
        (SENTENCE, TRANSLATION + TRANSLATION, Problem.LOOP),
        (SENTENCE, "山上的博物馆 nine nine nine nine 开门。", Problem.LOOP),
        ("Ha ha, very funny.", "哈" * 100, Problem.LOOP),
        ("It costs ten dollars.", "它要100000000000000美元。", Problem.LOOP),
        ("hello how are you", "hello how are you", Problem.COPIED),
        ("GAS RUN/INSPECTION PROPANE FIREPOTS", "Gas Run/Inspection Propane Firepots", Problem.COPIED),
        (SENTENCE, SENTENCE + "。", Problem.COPIED),
        (SENTENCE, "山上的博物馆早上九点开门，", Problem.EARLY_STOP),
        (SENTENCE, "山上的博物馆早上九点开门, ", Problem.EARLY_STOP),
        (SENTENCE, "他说：“山上的博物馆（", Problem.EARLY_STOP),
        (SENTENCE, "博物馆九点开门。", Problem.EARLY_STOP),
    ],
)
def test_each_kind_of_problem_is_named(source: str, target: str, problem: Problem) -> None:
    assert inspect(source, target) is problem


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (SENTENCE, TRANSLATION),
        (SENTENCE, "山上的博物馆早上九点开门 下午五点关门"),
        ("No, no, no, I will not.", "不，不，不，我不去。"),
        ("Hahaha, very funny.", "哈哈哈，真好笑。"),
        ("See www.example.org/aaaa.", "见www.example.org/aaaa。"),
        ("See https://example.org/some/long-path/of-words.", "见https://example.org/some/long-path/of-words。"),
        ("It has 1,000,000,000 users...", "它有1000000000个用户......"),
        ("Name: __________________", "姓名：__________________"),
        ("NASA", "NASA"),
        ("Visual Studio Code", "Visual Studio Code"),
        ("Run git commit first.", "先运行git commit。"),
        ("When it rains,", "下雨时，"),
        ("You need these:", "你需要这些："),
        ("It is late.", "天晚了。"),
        ("...", "..."),
        ("", ""),
    ],
)
def test_sound_translations_have_no_problem(source: str, target: str) -> None:
    assert inspect(source, target) is None


def test_a_translation_that_max_length_ended_is_a_problem_unless_it_is_a_loop() -> None:
    assert inspect(SENTENCE, TRANSLATION, ended=False) is Problem.MAX_LENGTH
    assert inspect(SENTENCE, "山上" * 200, ended=False) is Problem.LOOP


def test_the_value_of_a_problem_is_its_reason() -> None:
    assert json.dumps(inspect(SENTENCE, "")) == '"empty"'


@pytest.mark.parametrize(
    "characters", ["啊", "甲乙", "甲乙丙丁", "ab ", "10", "".join(map(chr, range(0x4E00, 0x9FFF)))]
)
@pytest.mark.parametrize("word", ["word ", "no no ", "a"])
def test_long_texts_take_linear_time(characters: str, word: str) -> None:
    target = "".join(random.Random(1).choices(characters, k=100_000))
    start = time.process_time()

    inspect(word * 20_000, target)

    assert time.process_time() - start < 5  # 0.2 s on an idle machine; minutes if it were quadratic
