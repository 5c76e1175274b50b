"""HTML comes back with its tags as they were, its text translated, and nothing translated that is no text."""

from __future__ import annotations

import html
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.engine.pack import ModelPack
from function.engine.translator import Translation, Translator
from function.text.markup import HtmlDocument
from function.text.tags import tokens
from tests.paths import held_out

# fmt: off
FRAGMENTS = st.lists(
    st.one_of(
        st.sampled_from([
            "<p>", "</p>", "<b>", "</b>", "<i class='x'>", "</i>", '<a href="a>b">', "</a>", "<br>", "<br/>",
            "<!-- c -->", "<!--", "-->", "<script>if(a<b)", "</script>", "<code>", "</code>", "<pre>", "</pre>", "<?x",
            "<img src=x>",
            '<span translate="no">', "</span>", "<wbr>", "</div>", "<li>", "<x-y>", "</x-y>", "<", ">", "</", "<!x>",
            "&amp;", "&lt;", "&nbsp;", "&#65;", "&foo;", "&", "One two. ", "three", ", four! ", "Hello", "\n", "  ",
            "你好。", "😆", "DOM",
        ]),
        st.text(max_size=8),
    ),
    max_size=25,
).map("".join)
# fmt: on


def tags_of(text: str) -> list[str]:
    return [token.raw for token in tokens(text) if token.kind != "text"]


def translated(text: str, translations: dict[str, str]) -> str:
    document = HtmlDocument(text)
    assert not set(translations) - set(document.segments)
    return document.join([translations.get(segment, segment) for segment in document.segments])


def test_blocks_end_sentences_and_tags_stay_to_the_byte() -> None:
    text = "<!DOCTYPE html>\n<P  Class='a>b' title=\"Hello\">Good day. It is\n  late.</P\n><ul><li>One</ul><!-- no -->"

    assert HtmlDocument(text).segments == ["Good day.", "It is late.", "One"]
    assert translated(text, {"Good day.": "你好。", "It is late.": "不早了。", "One": "一"}) == (
        "<!DOCTYPE html>\n<P  Class='a>b' title=\"Hello\">你好。不早了。</P\n><ul><li>一</ul><!-- no -->"
    )


@pytest.mark.parametrize(
    "text",
    [
        "<script>if (a < b) alert('Hello <p>you</p>')</script>",
        "<style>p > a { color: red }</style>",
        "<textarea>Hello you</textarea>",
        "<pre>Hello\n  <b>you</b></pre>",
        "<p><code>print('Hello')</code></p>",
        '<p translate="no">Hello <b>you</b></p>',
        "<p class='a notranslate b'>Hello you</p>",
        "<kbd>Enter</kbd>",
        "<!-- Hello you -->",
        "<p>12:30 &ndash; 😆</p>",
        "<p>你好</p>",
    ],
)
def test_what_is_no_text_is_not_translated(text: str) -> None:
    document = HtmlDocument(text)

    assert document.segments == []
    assert document.join([]) == text


def test_entities_are_decoded_for_the_model_and_escaped_after_it() -> None:
    text = "<p>Tom &amp; Jerry &#60;3 caf&eacute;s</p>&nbsp;<p>a < b &copy; c</p>"

    assert HtmlDocument(text).segments == ["Tom & Jerry <3 cafés", "a < b © c"]
    assert translated(text, {"Tom & Jerry <3 cafés": "汤姆 & 杰瑞 <3"}) == (
        "<p>汤姆 &amp; 杰瑞 &lt;3</p>&nbsp;<p>a < b &copy; c</p>"
    )


def test_tags_go_around_what_their_content_has_become() -> None:
    text = 'Please <a href="x">click <b>here</b></a> now.'
    words = {"click here": "点击这里", "here": "这里", "Please": "请", "click": "点击", "now.": "现在。"}

    assert (
        translated(text, {**words, "Please click here now.": "现在请点击这里。"})
        == '现在请<a href="x">点击<b>这里</b></a>。'
    )


@pytest.mark.parametrize("whole", ["现在请按。", "请点击，再点击。"])
def test_a_sentence_is_cut_at_its_tags_where_their_place_is_not_clear(whole: str) -> None:
    text = "Please <b>click</b> now."

    assert translated(text, {"Please click now.": whole, "click": "点击。", "Please": "请", "now.": "现在。"}) == (
        "请<b>点击</b>现在。"
    )


def test_entities_do_not_cut_a_sentence() -> None:
    assert HtmlDocument("<b>Tom &amp; Jerry</b> ran").segments == ["Tom & Jerry ran", "Tom & Jerry", "ran"]


def test_tags_that_would_change_their_order_cut_the_sentence() -> None:
    text = "<i>Men</i> of <b>honour</b>."
    parts = {"Men": "人", "honour": "荣誉", "of": "的"}

    assert translated(text, {**parts, "Men of honour.": "荣誉的人。"}) == "<i>人</i>的<b>荣誉</b>。"


def test_code_and_pictures_stand_in_the_sentence_as_words() -> None:
    text = "Use <code>os.rename(a)</code> to rename <img src='x'>."
    document = HtmlDocument(text)
    whole = document.segments[0]

    assert whole == "Use DOM to rename Linux."
    assert translated(text, {whole: "使用 DOM 重命名 Linux。", "Use": "用", "to rename": "重命名"}) == (
        "使用 <code>os.rename(a)</code> 重命名 <img src='x'>。"
    )
    assert translated(text, {whole: "使用重命名。", "Use": "用", "to rename": "重命名"}) == (
        "用 <code>os.rename(a)</code> 重命名 <img src='x'>。"
    )


def test_subtitles_keep_their_line_breaks() -> None:
    assert translated("<i>Hello there.</i><br />Bye.", {"Hello there.": "你好。", "Bye.": "再见。"}) == (
        "<i>你好。</i><br />再见。"
    )
    text = "I think that we<br>should go home."
    assert (
        translated(text, {"I think that we should go home.": "我认为，我们应该回家。"}) == "我认为，<br>我们应该回家。"
    )
    assert HtmlDocument("12 High Street<br>London<br>England").segments == ["12 High Street", "London", "England"]


@pytest.mark.parametrize(
    "text", ["<p>One <b>two</p> three", "a < b", "<a href='x>Hi", "x <!-- y", "</b></i>Hi<", "<![x", "&;"]
)
def test_malformed_html_keeps_its_bytes(text: str) -> None:
    document = HtmlDocument(text)

    assert document.join(document.segments) == text
    assert tags_of(document.join(["译" for _ in document.segments])) == tags_of(text)


def test_a_missing_translation_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        HtmlDocument("<p>One</p><p>Two</p>").join(["一"])


@given(FRAGMENTS)
def test_html_that_was_not_translated_is_the_same(text: str) -> None:
    document = HtmlDocument(text)

    assert "".join(token.raw for token in tokens(text)) == text
    assert document.join(document.segments) == text
    assert all(segment == segment.strip() and "\n" not in segment for segment in document.segments)


@given(FRAGMENTS, st.sampled_from(["译文。", "A <b>&amp; 译</b>", "x", "DOM 译 Linux", "译"]))
def test_tags_keep_their_sequence(text: str, translation: str) -> None:
    document = HtmlDocument(text)

    assert tags_of(document.join([translation for _ in document.segments])) == tags_of(text)
    assert tags_of(document.join([segment + "译" for segment in document.segments])) == tags_of(text)


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<!--",
        "<a '",
        '<a href="',
        '<a ="x>y" ',
        "<script></script ",
        "<b>",
        "<b>x <i>y ",
        "a<br>b ",
        "<code>x ",
        "&amp;",
    ],
)
def test_time_grows_with_length_and_no_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = (unit * length)[:length]
        times = []
        for _ in range(3):
            start = time.process_time()
            document = HtmlDocument(text)
            document.join([f"{segment}。" for segment in document.segments])
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(24_000) < 20 * seconds(3_000) + 0.02


def test_most_of_a_real_sentence_is_translated_around_its_tags(int8_pack: Path) -> None:
    translator = Translator(ModelPack.open(int8_pack), threads=2)
    rows = [row["en"].split() for row in held_out("test_tatoeba")[:60]]
    texts = [
        f"<p>{html.escape(w[0])} <b>{html.escape(w[1])}</b> {html.escape(' '.join(w[2:]))}</p>"
        for w in rows
        if len(w) > 3
    ]
    documents = [HtmlDocument(text) for text in texts]
    segments = list(dict.fromkeys(segment for document in documents for segment in document.segments))
    results = translator.translate(segments)
    known = {s: r.text for s, r in zip(segments, results, strict=True) if isinstance(r, Translation)}

    outputs = [document.join([known[segment] for segment in document.segments]) for document in documents]

    assert [tags_of(output) for output in outputs] == [["<p>", "<b>", "</b>", "</p>"]] * len(texts)
    assert sum(any("\u4e00" <= c <= "\u9fff" for c in output) for output in outputs) > 0.95 * len(texts)
