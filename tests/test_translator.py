"""Texts in, translations out, each in its own place, and what must not change unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from function.engine.batching import MAX_ROWS, MAX_TOKENS, batches
from function.engine.pack import ModelPack
from function.engine.translator import Options, Translation, Translator, Unfinished
from function.text.guard import Problem, Quality
from function.text.pieces import is_wide
from function.text.spans import NUMBER, find_spans
from tests.paths import held_out
from tests.spans import spans_survive

LONG = "one two three " * 400


@pytest.fixture(scope="module")
def translator(int8_pack: Path) -> Translator:
    return Translator(ModelPack.open(int8_pack), threads=2)


def texts_of(results: list[Translation | Unfinished]) -> list[str]:
    assert all(isinstance(result, Translation) for result in results)
    return [result.text for result in results if isinstance(result, Translation)]


def translate(translator: Translator, text: str, options: Options | None = None) -> Translation:
    (result,) = translator.translate([text], options=[options or Options()])
    assert isinstance(result, Translation)
    return result


def is_chinese(text: str) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for character in text)


def test_results_keep_the_order_of_the_texts(translator: Translator) -> None:
    texts = [row["en"] for row in held_out("test_tatoeba")[:70]]

    together = texts_of(translator.translate(texts))

    assert together == [text for one in texts for text in texts_of(translator.translate([one]))]


@pytest.mark.parametrize(
    "text", ["", " ", "-", "3.14", "…", "😀", "\t\n", "https://example.org/a?b=1", "今天天气很好。", "12:30 - 14:00"]
)
def test_text_with_nothing_to_translate_comes_back_without_a_model(int8_pack: Path, text: str) -> None:
    translator = Translator(ModelPack.open(int8_pack), threads=1)

    assert translate(translator, text) == Translation(text, None, 0, 0)
    assert not vars(translator._model).keys() & {"_search", "_tokenizer"}, "a model was loaded for nothing"


@pytest.mark.parametrize(
    "text", ["Good morning.\n\n  - Thank you.  \r\n\r\n1. How are you?\n", "\n\nHello.\n\tBye.", "a\u2028b\n"]
)
def test_lines_indentation_and_endings_stay(translator: Translator, text: str) -> None:
    result = translate(translator, text).text

    def frame(text: str) -> list[tuple[str, str]]:
        lines = text.splitlines(keepends=True)
        return [(line[: len(line) - len(line.lstrip(" \t-1."))], line[len(line.rstrip()) :]) for line in lines]

    assert frame(result) == frame(text)
    assert is_chinese(result)


def test_sentences_of_a_line_are_translated_one_by_one(translator: Translator) -> None:
    sentences = ["The weather is nice today.", "I went to the market.", "Dr. Smith bought 3.5 kilos of apples."]

    together = translate(translator, " ".join(sentences))

    assert together.segments == 3
    assert together.text == "".join(translate(translator, sentence).text for sentence in sentences)


def test_one_text_may_be_one_segment(translator: Translator) -> None:
    text = "The weather is nice today. I went to the market."

    assert translate(translator, text, Options(segmentation="none")).segments == 1


def test_hard_wrapped_lines_are_joined_on_demand(translator: Translator) -> None:
    text = "I went to the market yesterday because\nwe wanted to buy some fresh apples."

    assert translate(translator, text).text.count("\n") == 1
    unwrapped = translate(translator, text, Options(segmentation="unwrap"))
    assert (unwrapped.segments, unwrapped.text.count("\n")) == (1, 0)


def test_nothing_of_a_text_beyond_the_models_positions_is_cut_off(translator: Translator) -> None:
    before, long, after = translator.translate(["Good morning.", LONG, "Thank you."])

    assert isinstance(long, Translation)
    assert long.source_tokens > 1200
    assert [before, after] == translator.translate(["Good morning.", "Thank you."])


def test_a_long_document_is_translated_whole(translator: Translator) -> None:
    rows = [row["en"] for row in held_out("test_tatoeba")[:300]]
    text = "\n".join(rows)

    result = translate(translator, text)

    assert len(result.text.split("\n")) == 300
    assert result.segments >= 300


@pytest.mark.parametrize(
    "text",
    [
        "@user see https://example.org/AbC1?x=2 for more.",
        "Write to jane.doe@example.org today.",
        "The file is in /usr/share/doc/readme.txt now.",
        "Run `pip install numpy` first.",
        "Hello {name}, you have %d messages and ${count} files.",
        "Haha yes… 😆 I guess we will see.",
        "The literal </s> and >>cmn_Hant<< are text.",
    ],
)
def test_what_must_not_change_does_not(translator: Translator, text: str) -> None:
    result = translate(translator, text).text

    assert is_chinese(result)
    assert spans_survive(text, result)


def test_numbers_keep_their_digits(translator: Translator) -> None:
    assert "2.200.112" in translate(translator, "Version 2.200.112 of 12 files").text


@pytest.mark.parametrize(
    "text", ["THE WEATHER IS NICE TODAY.", "The Weather Is Nice Today", "the weather is nice today"]
)
def test_capitals_are_no_reason_to_echo(translator: Translator, text: str) -> None:
    assert is_chinese(translate(translator, text).text)


def test_curly_apostrophes_mean_the_same(translator: Translator) -> None:
    straight, curly = texts_of(translator.translate(["I couldn't sleep.", "I couldn\u2019t sleep."]))
    assert straight == curly


def test_tags_of_html_stay(translator: Translator) -> None:
    text = (
        '<p class="x">The <b>weather</b> is nice.<br/>\n<code>x = 1</code> &amp; <i>more</i></p><script>a < b</script>'
    )

    result = translate(translator, text, Options(format="html")).text

    for kept in ('<p class="x">', "<b>", "</b>", "<br/>", "<code>x = 1</code>", "&amp;", "<script>a < b</script>"):
        assert result.count(kept) == text.count(kept)
    assert is_chinese(result)


def test_typography_can_be_left_out(translator: Translator) -> None:
    texts = [row["en"] for row in held_out("test_tatoeba")[:200]]

    plain = texts_of(translator.translate(texts, options=[Options(typography=False)] * len(texts)))
    typeset = texts_of(translator.translate(texts))

    assert plain != typeset
    differing = [(a, b) for a, b in zip(plain, typeset, strict=True) if a != b]
    assert all([c for c in a if c.isalnum()] == [c for c in b if c.isalnum()] for a, b in differing), (
        "typography touches punctuation and spaces alone"
    )


def test_spaces_between_chinese_and_latin_are_a_choice(translator: Translator) -> None:
    text = "I use Linux and {name} every day."

    spaced, closed = (translate(translator, text, Options(spacing=spacing)).text for spacing in ("space", "none"))

    assert spaced != closed
    assert spaced.replace(" ", "") == closed.replace(" ", "")


def test_a_loop_is_found_and_recovered_or_flagged(translator: Translator) -> None:
    """Sentences with which the starter model is known to go round in circles."""
    rows = [row["en"] for row in held_out("test_docs")]
    results = [result for result in translator.translate(rows) if isinstance(result, Translation)]

    bad = [result for result in results if result.quality is not Quality.OK]
    assert 5 <= len(bad) <= 0.3 * len(rows)
    assert any(result.quality is Quality.RECOVERED for result in bad)
    assert all((result.problem is None) == (result.quality is not Quality.SUSPECT) for result in results)


def test_an_empty_output_is_never_silent(translator: Translator) -> None:
    results = translator.translate([row["en"] for row in held_out("dev")])

    for result in results:
        assert isinstance(result, Translation)
        assert result.text.strip() or result.problem is Problem.EMPTY


def test_the_trace_shows_the_stages(translator: Translator) -> None:
    result = translate(translator, "SEE https://example.org/a FOR MORE, PLEASE.")

    (trace,) = result.trace
    assert trace.segment == "SEE https://example.org/a FOR MORE, PLEASE."
    stages = [stage for stage, _ in trace.steps]
    assert stages[:3] == ["case", "mask", "decode"]


def test_a_translation_tells_its_tokens_and_score(translator: Translator) -> None:
    translation = translate(translator, "Good morning.")

    assert translation.source_tokens > 1
    assert translation.target_tokens > 1
    assert translation.score is not None
    assert translation.score < 0


def test_half_a_surrogate_pair_becomes_a_character_that_can_be_written(translator: Translator) -> None:
    broken, whole = translator.translate(["Good \ud83d morning.", "Good \ufffd morning."])
    (digits,) = texts_of(translator.translate(["\ud83d 12"]))

    assert broken == whole
    assert digits == "\ufffd 12"


def test_no_texts_give_no_translations(translator: Translator) -> None:
    assert translator.translate([]) == []


def test_when_time_is_up_texts_are_unfinished(translator: Translator) -> None:
    asked = iter([False] * 3)

    results = translator.translate(["Good morning.", "-"], is_out_of_time=lambda: next(asked, True))

    assert isinstance(results[0], Unfinished)
    assert results[1] == Translation("-", None, 0, 0)


WORDS = st.sampled_from(
    [
        *("The", "cat", "sat", "NASA", "1,000", "3.14", "{name}", "https://a.org/b?c=d", "@me", "#tag", "`x`", "😀"),
        *("%s", "it's", "...", "!", "</s>", "<b>", "C:\\x\\y", "--", "\t", "\n", "\r\n", "  ", "中文", "(a)", "- "),
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(WORDS, st.text(max_size=8)), max_size=12).map(" ".join))
def test_of_any_text_lines_and_spans_are_kept(translator: Translator, text: str) -> None:
    result = translate(translator, text).text
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    assert len(result.splitlines()) == len(text.splitlines())
    for span in find_spans(text):
        if span.kind != NUMBER:
            assert text[span.start : span.end] in result


def test_batches_hold_every_sentence_once_within_the_limits() -> None:
    lengths = [(index * 37) % 500 + 1 for index in range(1000)]

    for workers in (1, 2, 3):
        grouped = list(batches(lengths, workers))

        assert sorted(index for batch in grouped for index in batch) == list(range(1000))
        for batch in grouped:
            assert len(batch) <= MAX_ROWS
            assert len(batch) * max(lengths[index] for index in batch) <= MAX_TOKENS


def test_workers_share_few_sentences_evenly() -> None:
    assert [len(batch) for batch in batches([5] * 20, workers=2)] == [10, 10]


def test_workers_share_tokens_not_sentences() -> None:
    lengths = [20] * 8 + [10] * 16

    shares = [sum(lengths[index] for index in batch) for batch in batches(lengths, workers=2)]

    assert shares == [160, 160]


def test_short_sentences_are_not_padded_to_the_length_of_long_ones() -> None:
    assert list(batches([59, 30, 29, 15, 14])) == [[0, 1], [2, 3], [4]]


def test_a_sentence_above_the_token_limit_is_a_batch_of_its_own() -> None:
    assert list(batches([MAX_TOKENS + 1, 5])) == [[0], [1]]


def test_chinese_stands_without_spaces(translator: Translator) -> None:
    result = translate(translator, "Good morning. Thank you. See you tomorrow.").text

    assert all(
        not (is_wide(a) and b == " " and is_wide(c)) for a, b, c in zip(result, result[1:], result[2:], strict=False)
    )
