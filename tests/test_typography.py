"""Chinese typography: what is corrected, what is left alone, and what it is worth on published outputs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import corpus_bleu, corpus_chrf

from function.text.typography import Style, typeset
from tests.paths import SHARED

FLORES = SHARED / "eval" / "opus-mt-en-zh-outputs"
REFERENCES = {
    "flores": (FLORES / "flores-dev.en", FLORES / "flores-dev.zh"),
    "tico": (SHARED / "eval" / "tico19" / "tico19-test.en", SHARED / "eval" / "tico19" / "tico19-test.zh"),
}
needs_shared = pytest.mark.skipif(not FLORES.is_dir(), reason="evaluation text is not here")

CORRECTED = [
    ("今天下雨,但很暖和.", "It rains today, but it is warm.", "今天下雨，但很暖和。"),
    ("你好吗?很好!", "", "你好吗？很好！"),
    ("规则如下:先洗手;再吃饭.", "", "规则如下：先洗手；再吃饭。"),
    ("昨天, Anna来了, 今天, 她走了.", "", "昨天，Anna来了，今天，她走了。"),
    ("你认识John?", "Do you know John?", "你认识John？"),
    ("我们 今天 去 公园 。", "", "我们今天去公园。"),
    ("世界卫生组织(WHO)说(见下文)好.", "", "世界卫生组织（WHO）说（见下文）好。"),
    ("北京(Beijing), John也去.", "", "北京（Beijing），John也去。"),
    ('这叫"绿卡".', "", "这叫“绿卡”。"),
    ('他读了 "React" 文档.', "", "他读了“React”文档。"),
    ("“他说'好'吧”", "", "“他说‘好’吧”"),
    ('“他说"好"吧”', "", "“他说‘好’吧”"),
    ("「政治代表」", "", "“政治代表”"),
    ('她说,"我们走吧,天黑了."', 'She said, "Let us go, it is dark."', "她说：“我们走吧，天黑了。”"),
    ('她说,"绿卡"这个词不对.', "", "她说，“绿卡”这个词不对。"),
    ("他想了想...走了", "", "他想了想……走了"),
    ("只有一个选择 -- -- 离开。", "", "只有一个选择——离开。"),
    ("人口是6 500人", "6,500 people", "人口是6,500人"),
    ("人口是6 500人", "6500 people", "人口是6500人"),
    ("早安", "Good morning.", "早安。"),
    ("真的", "Really?", "真的？"),
    ("“我们走”", '"We go."', "“我们走。”"),
    ("这叫“绿卡”", 'That is a "green card".', "这叫“绿卡”。"),
    ("他最近在公开赛上 输给了另一个人", "He lost.", "他最近在公开赛上，输给了另一个人。"),
]

LEFT_ALONE = [
    ("圆周率是3.14，时间是10:30，共1,000人。", ""),
    ("版本2.200.112，比分3:2。", ""),
    ("见https://example.org/AbC1?x=2,y(z)。", ""),
    ('运行`print(中, "文")`。', ""),
    ('请输入 {name, 名}、%s、${x}、{{x, 中}}、<0 a="中,文">和%(name)s。', ""),
    ("写信给me.x@example.com或@user。", ""),
    ("打开C:\\Users\\me, now.txt。", ""),
    ("他写道：“Hello, world. How are you?”", ""),
    ("身高6'2\"，体重80。", ""),
    ("大卫·O'Shannessy说I couldn't。", ""),
    ("雅虎（Yahoo!）在这里。", ""),
    ("我在Yahoo!工作。", "I am in the Yahoo! team."),
    ("f(x)是函数。", "f(x) is a function."),
    ("你好 :) 世界", ""),
    ("配置在.ini文件里。", ""),
    ("诺曼底—巴黎铁路。", ""),
    ("约翰·史密斯 (John Smith) 说。", ""),
    ("在 React 中，用 12 个。", ""),
    ("他来自U.S.", "He is from the U.S."),
    ("Good morning, world.", "Good morning, world."),
    ("  行首和行尾的空格  ", ""),
    ("", "Hello."),
]


@pytest.mark.parametrize(("target", "source", "expected"), CORRECTED)
def test_corrected(target: str, source: str, expected: str) -> None:
    assert typeset(target, source) == expected


@pytest.mark.parametrize(("target", "source"), LEFT_ALONE)
def test_left_alone(target: str, source: str) -> None:
    assert typeset(target, source) == target


def test_each_script_has_its_quotation_marks() -> None:
    target = "他說\"你好\"和“再'見'”"

    assert typeset(target, style=Style(script="Hant")) == "他說「你好」和「再『見』」"
    assert typeset(target, style=Style(script="Hans")) == "他說“你好”和“再‘見’”"


def test_spacing_is_kept_taken_out_or_put_in() -> None:
    target = "在 React中用12 个%s和50%的人"

    assert typeset(target) == target
    assert typeset(target, style=Style(spacing="none")) == "在React中用12个%s和50%的人"
    assert typeset(target, style=Style(spacing="space")) == "在 React 中用 12 个%s 和 50% 的人"


PIECES = [
    *"好他的说，。、；：？！（）“”‘’「」『』《》…—,.;:?!()\"' -a1%é\ue000\n",
    *("...", "--", "——", "John", "3.14", "1 000", "10:30", "`a, b`", "{x}", "http://a.b/c?d", "<b>", "@me"),
    *("今天天气很好", "我们去公园", '他说,"', "，“", "U.S."),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=20)
SOURCES = st.sampled_from(["", "Hello.", "Hi?", '"Go!"', "He said (a) 1,000 :a Yahoo! x...", "(x)."]) | TEXTS
STYLES = st.builds(Style, script=st.sampled_from(["Hans", "Hant"]), spacing=st.sampled_from(["keep", "none", "space"]))


@settings(max_examples=600, deadline=None)
@given(TEXTS, SOURCES, STYLES)
def test_letters_and_digits_stay_and_a_second_time_changes_nothing(target: str, source: str, style: Style) -> None:
    typeset_once = typeset(target, source, style)

    assert [c for c in typeset_once if c.isalnum()] == [c for c in target if c.isalnum()]
    assert typeset_once.count("\n") == target.count("\n")
    assert typeset(typeset_once, source, style) == typeset_once


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["好,", "他说 ", '"', "(好)", "。", "走了..."]), max_size=4).map("".join),
    st.sampled_from(["`a, 好 (b)`", "{名, x}", "https://a.b/c?d=e,f(g)", '<a title="好,">', "3.14", "10:30", "1,000"]),
    st.lists(st.sampled_from(["好,", " 他说", '"', "(好)", "。", "走了..."]), max_size=4).map("".join),
)
def test_what_must_not_change_does_not(before: str, span: str, after: str) -> None:
    assert span in typeset(f"{before}好{span}好{after}")


REPEATED = ["好,", "(a", "((", "好 好", " ", "...", '"', '","', "'", '“"', "`", "{", "http://", "http://(", ". ", "——"]


@pytest.mark.parametrize("piece", REPEATED)
def test_long_text_takes_linear_time(piece: str) -> None:
    text = "好" + piece * (100_000 // len(piece))
    start = time.perf_counter()

    typeset(text, text)

    assert time.perf_counter() - start < 1


@needs_shared
def test_published_outputs_of_opus_mt_come_nearer_to_the_reference() -> None:
    sources, references, outputs = (_lines(f"flores-dev.{name}") for name in ("en", "zh", "opusmt.zh"))

    retouched = [typeset(target, source) for target, source in zip(outputs, sources, strict=True)]

    assert _bleu(retouched, references) >= _bleu(outputs, references) + 3.3
    assert corpus_chrf(retouched, [references]).score >= corpus_chrf(outputs, [references]).score


@needs_shared
def test_good_output_of_another_system_does_not_get_worse() -> None:
    sources, references, outputs = (_lines(f"flores-dev.{name}") for name in ("en", "zh", "google.zh"))

    retouched = [typeset(target, source) for target, source in zip(outputs, sources, strict=True)]

    assert _bleu(retouched, references) > _bleu(outputs, references) - 0.1


@needs_shared
@pytest.mark.parametrize("name", REFERENCES)
def test_careful_human_chinese_stays_but_for_spaces(name: str) -> None:
    sources, targets = (path.read_text("utf-8").splitlines() for path in REFERENCES[name])

    changed = [
        target
        for target, source in zip(targets, sources, strict=True)
        if typeset(target, source).replace(" ", "") != target.replace(" ", "")
    ]

    assert len(changed) < 0.02 * len(targets)


def _bleu(targets: list[str], references: list[str]) -> float:
    return corpus_bleu(targets, [references], tokenize="zh").score


def _lines(name: str) -> list[str]:
    return (FLORES / name).read_text("utf-8").splitlines()
