"""What must not change in translation does not, and how capitals are read."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.engine.model import Model
from function.engine.pack import ModelPack
from function.text.caps import normalize_case
from function.text.draft import Draft
from function.text.ladder import translate_protected
from function.text.protection import cut, lost, mask, paste, unmask
from function.text.spans import find_spans
from tests.paths import SHARED, held_out
from tests.spans import spans_survive

TEXTS = st.text(
    st.one_of(
        st.sampled_from("abX19 .,:;/\\@#%$`{}()<>&_-+*?='\"~|[]!\n😆❤\ufe0f\u200d你。\ud83d\u20e3"), st.characters()
    ),
    max_size=120,
)


def found(text: str) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.kind) for span in find_spans(text)]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("@user see https://example.org/AbC1?x=2", [("@user", "handle"), ("https://example.org/AbC1?x=2", "url")]),
        ("(see https://en.wikipedia.org/wiki/A_(b)).", [("https://en.wikipedia.org/wiki/A_(b)", "url")]),
        ("Go to www.foo.com/x, or example.com!", [("www.foo.com/x", "url"), ("example.com", "url")]),
        ("访问https://x.org/a了解。", [("https://x.org/a", "url")]),
        ("Mail bob.lee@mail.example.com.", [("bob.lee@mail.example.com", "email")]),
        ("It is #1 for #LoveLife & C#", [("#1", "hashtag"), ("#LoveLife", "hashtag")]),
        ("Open /usr/local/bin, ~/x or ./a", [("/usr/local/bin", "path"), ("~/x", "path"), ("./a", "path")]),
        (r"In C:\Users\bob\a.txt or \\host\share", [(r"C:\Users\bob\a.txt", "path"), (r"\\host\share", "path")]),
        ("Edit src/main.py and README.md.", [("src/main.py", "path"), ("README.md", "path")]),
        ("Run `a b` or os.rename() with my_var", [("`a b`", "code"), ("os.rename()", "code"), ("my_var", "code")]),
        ("Hi {name}, {0} of {{x}}", [(text, "placeholder") for text in ("{name}", "{0}", "{{x}}")]),
        ("%d of %(name)s: %1$s, %.2f", [(text, "placeholder") for text in ("%d", "%(name)s", "%1$s", "%.2f")]),
        ("${HOME} $HOME %PATH% <0>a</0>", [(t, "placeholder") for t in ("${HOME}", "$HOME", "%PATH%", "<0>", "</0>")]),
        ('<b>a</b><br />c<a href="x y">', [(text, "markup") for text in ("<b>", "</b>", "<br />", '<a href="x y">')]),
        ("</s> and >>yue<< here", [("</s>", "control"), (">>yue<<", "control")]),
        ("Ok 😆 👩‍👩‍👧🇨🇳 1️⃣ ❤️", [(text, "emoji") for text in ("😆", "👩‍👩‍👧🇨🇳", "1️⃣", "❤️")]),
        ("Version 2.200.112 of 12", [("2.200.112", "number"), ("12", "number")]),
        ("COVID-19, IE11, 4x, 1,000.5", [(text, "number") for text in ("COVID-19", "IE11", "4x", "1,000.5")]),
    ],
)
def test_spans_of_each_kind(text: str, spans: list[tuple[str, str]]) -> None:
    assert found(text) == spans


@pytest.mark.parametrize(
    "text",
    [
        "Plain words, nothing else. Really?",
        "and/or, he/she, AT&T; a < b and c > d",
        "I'd say: it's 'quoted' - well...",
        "e.g. this, i.e. that, U.S. and a.m.",
        "Wait:what? Yes.No",
    ],
)
def test_plain_text_has_no_spans(text: str) -> None:
    assert found(text) == []


@given(TEXTS)
def test_spans_are_in_order_and_apart(text: str) -> None:
    spans = find_spans(text)

    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(first.end <= second.start for first, second in pairwise(spans))


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a.",
        "a/",
        "`",
        "{",
        "<b ",
        "%",
        "a@",
        "a_",
        "\\",
        "1,",
        "A-",
        "--a",
        ".",
        "http://x)",
        "a.com/(",
        "😀",
        ":a",
    ],
)
def test_time_grows_with_length_and_no_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = (unit * length)[:length] + " `@"
        times = []
        for _ in range(3):
            start = time.process_time()
            find_spans(text)
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(40_000) < 20 * seconds(5_000) + 0.02


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("It has 1,000 pages.", "有1000页。"),
        ("It has 1,000 pages.", "有1 000页。"),
        ("It has 1,000 pages.", "有一千页。"),
        ("a fortune of $2.3 billion", "约 23 亿美元的财富"),
        ("5,000,000 visitors and 100,000 more", "500万访客和十万人"),
        ("54 million profiles", "5 400万个简介"),
        ("over 2.2 million km2", "220多万平方公里"),
        ("It is 9:30 now, at 11:00 we go.", "现在是9时30分，11点我们走。"),
        ("It is 9:30.", "现在九点半。"),
        ("at 3 p.m. in the 1990s", "90年代的15点"),
        ("1995-96", "1995-1996年"),
        ("on 12/05/2026", "2026年12月5日"),
        ("by 50%", "百分之五十"),
        ("the 1st of 12", "十二个中的第一个"),
        ("In 2012", "二〇一二年"),
        ("100 of 3,500", "3500的一百"),
        ("He is twenty.", "他20岁。"),
        ("Use {0} for 3.", "3 用 {0}。"),
    ],
)
def test_numbers_survive_in_any_form_that_chinese_has(source: str, target: str) -> None:
    assert spans_survive(source, target)


@pytest.mark.parametrize(
    ("source", "target", "altered"),
    [
        ("It has 1,000 pages.", "有10000页。", ["1,000"]),
        ("I woke up at 2:30.", "我二十点起床了。", ["2:30"]),
        ("Version 2.200.112 of 12", "12 的 2.20.112 版", ["2.200.112"]),
        ("$2.3 billion", "2.3亿美元", ["2.3"]),
        ("2 and 2", "2", ["2"]),
        ("Python 3.0", "Python 3", ["3.0"]),
        ("See {name} and %s.", "见 {名称} 和 %s。", ["{name}"]),
        ("See {name}.", "{name}见{name}。", ["{name}"]),
        ("Ok 😆", "好的", ["😆"]),
    ],
)
def test_what_is_lost_is_named(source: str, target: str, altered: list[str]) -> None:
    missing = lost(source, find_spans(source), target)

    assert [source[span.start : span.end] for span in missing] == altered
    assert not spans_survive(source, target)


@pytest.mark.parametrize("name", ["zh", "opusmt.zh"])
def test_good_translations_keep_their_numbers(name: str) -> None:
    folder = SHARED / "eval" / "opus-mt-en-zh-outputs"
    if not folder.exists():
        pytest.skip("the shared evaluation texts are not here")
    sources = (folder / "flores-dev.en").read_text("utf-8").split("\n")
    targets = (folder / f"flores-dev.{name}").read_text("utf-8").split("\n")
    with_numbers = [
        (source, target) for source, target in zip(sources, targets, strict=True) if any(map(str.isdecimal, source))
    ]
    kept = sum(spans_survive(source, target) for source, target in with_numbers)

    assert kept / len(with_numbers) > 0.93


def test_a_mask_is_undone_wherever_the_translation_has_put_it() -> None:
    text = "Open {file} in https://x.org/a, then go."
    masked = mask(text, find_spans(text))

    assert masked is not None
    first, second = (item.word for item in masked.masks)
    assert masked.text == f"Open {first} in {second}, then go."
    assert unmask(f"在 {second} 中打开 {first}，然后走。", masked) == "在 https://x.org/a 中打开 {file}，然后走。"
    for broken in (f"打开 {first}", f"{first} {second} {second}", f"{first}s {second}", f"{first.lower()} {second}"):
        assert unmask(broken, masked) is None


def test_masks_are_no_words_of_the_text_and_touch_none() -> None:
    text = "The DOM has {count}px (see {link}) in Linux"
    masked = mask(text, find_spans(text))

    assert masked is not None
    count, link = (item.word for item in masked.masks)
    assert masked.text == f"The DOM has {count} px (see {link}) in Linux"
    assert unmask(f"Linux 的 DOM 有 {count} px（见 {link} ）", masked) == "Linux 的 DOM 有 {count}px（见 {link}）"


def test_emoji_and_tags_at_the_edges_need_no_mask() -> None:
    text = "<i>😆 Good day! </i> #sunny #day"
    masked = mask(text, find_spans(text))

    assert masked is not None
    assert masked.text == "Good day!"
    assert unmask("你好！", masked) == "<i>😆 你好！ </i> #sunny #day"


def test_more_spans_than_a_model_keeps_are_not_masked() -> None:
    text = "{a} {b} {c} {d} {e} go"

    assert mask(text, find_spans(text)) is None


def test_cutting_keeps_every_span() -> None:
    text = "See {a}, then {b}."
    pieces = cut(text, find_spans(text))

    assert [piece.text for piece in pieces if piece.translatable] == ["See", ", then"]
    assert paste(pieces, ["请看。", "，然后"]) == "请看 {a}，然后 {b}。"
    assert paste(pieces, ["See", ", then"]) == text
    with pytest.raises(ValueError, match="one translation"):
        paste(pieces, ["请看。"])


@given(TEXTS)
def test_identity_comes_back_by_every_way(text: str) -> None:
    spans = find_spans(text)
    masked = mask(text, spans)
    pieces = cut(text, spans)

    if masked is not None:
        assert unmask(masked.text, masked) is not None
    assert "".join(piece.text for piece in pieces) == text
    assert paste(pieces, [piece.text for piece in pieces if piece.translatable]) == text
    assert all(span.kind == "number" for span in lost(text, spans, text))


@given(TEXTS)
def test_the_ladder_keeps_spans_whatever_the_model_does(text: str) -> None:
    (translation,) = translate_protected([text], lambda texts: [Draft("译文") for _ in texts])

    kept = [text[span.start : span.end] for span in find_spans(text) if span.kind != "number"]
    assert all(value in translation.text for value in kept)


def test_spans_survive_the_model(int8_pack: Path) -> None:
    model = Model(ModelPack.open(int8_pack), threads=2)
    values = ["https://example.org/AbC1?x=2", "{name}", "%(count)d", "@Jane", "main.py", "😆", "`os.rename()`", "12:45"]
    frames = [
        "Visit {} for more information.",
        "Where is {}?",
        "Open {} and click the button.",
        "If {} is empty, stop.",
    ]
    sources = [frame.replace("{}", value) for frame in frames for value in values]
    sources += [row["en"] for row in held_out("test_docs") if len(row["en"]) < 80 and find_spans(row["en"])][:30]

    translations = [draft.text for draft in translate_protected(sources, model.decode)]

    assert [
        source for source, target in zip(sources, translations, strict=True) if not spans_survive(source, target)
    ] == []
    assert sum(any("\u4e00" <= c <= "\u9fff" for c in translation) for translation in translations) > 0.9 * len(sources)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GAS RUN/INSPECTION PROPANE FIREPOTS", "Gas run/inspection propane firepots"),
        ("DO NOT OPEN! USE THE USB CABLE AND HTML. I'M HERE", "Do not open! Use the USB cable and HTML. I'm here"),
        ("WHO IS IT?", "Who is it?"),
        ("HELLO", "Hello"),
        ("The Quick Brown Fox Jumps", "The quick brown fox jumps"),
        ("How to Open the Door", "How to open the door"),
        ("hello how are you", "Hello how are you"),
        ("ÉCOLE İSTANBUL", "École İstanbul"),
        *(
            (t, t)
            for t in ("NASA", "USB", "OK", "I am", "New York City", "The NASA probe", "Sign Out", "iPhone is good")
        ),
        *((t, t) for t in ("WARNING: Hot surface!", "hello", "Tom Likes Mary", "12", "", "你好")),
    ],
)
def test_capitals_become_sentence_case(text: str, expected: str) -> None:
    assert normalize_case(text) == expected


def test_spans_keep_their_case() -> None:
    text = "PLEASE VISIT HTTPS://EXAMPLE.ORG/ABC OR USE {NAME} NOW"

    assert normalize_case(text, find_spans(text.replace("HTTPS", "https"))) == (
        "Please visit HTTPS://EXAMPLE.ORG/ABC or use {NAME} now"
    )


@given(TEXTS)
def test_case_changes_no_length_and_only_case(text: str) -> None:
    changed = normalize_case(text, find_spans(text))

    assert len(changed) == len(text)
    assert changed.casefold() == text.casefold()
