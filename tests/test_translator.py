"""Texts in, translations out, each in its own place."""

from __future__ import annotations

from pathlib import Path

import pytest

from function.engine.batching import MAX_ROWS, MAX_TOKENS, batches
from function.engine.pack import ModelPack
from function.engine.translator import TextError, Translation, Translator
from tests.paths import held_out

TOO_LONG = "one two three " * 400


def texts_of(results: list[Translation | TextError]) -> list[str]:
    assert all(isinstance(result, Translation) for result in results)
    return [result.text for result in results if isinstance(result, Translation)]


def test_results_keep_the_order_of_the_texts(fp32_translator: Translator) -> None:
    texts = [row["en"] for row in held_out("test_tatoeba")[:70]]

    together = texts_of(fp32_translator.translate(texts))

    assert together == [text for one in texts for text in texts_of(fp32_translator.translate([one]))]


@pytest.mark.parametrize("text", ["", " ", "-", "3.14", "…", "😀", "\t\n"])
def test_text_without_a_letter_comes_back_as_it_is(int8_pack: Path, text: str) -> None:
    translator = Translator(ModelPack.open(int8_pack), threads=1)

    assert translator.translate([text]) == [Translation(text, None, 0, 0)]
    assert not {"_search", "_tokenizer"} & vars(translator).keys(), "a model was loaded for nothing"


def test_a_text_beyond_the_models_positions_is_refused_alone(fp32_translator: Translator) -> None:
    before, refused, after = fp32_translator.translate(["Good morning.", TOO_LONG, "Thank you."])

    assert isinstance(refused, TextError)
    assert "longer than the 512" in str(refused)
    assert [before, after] == fp32_translator.translate(["Good morning.", "Thank you."])


def test_a_translation_tells_its_tokens_and_score(fp32_translator: Translator) -> None:
    (translation,) = fp32_translator.translate(["Good morning."])

    assert isinstance(translation, Translation)
    assert translation.source_tokens > 1
    assert translation.target_tokens > 1
    assert translation.score is not None
    assert translation.score < 0


def test_half_a_surrogate_pair_becomes_a_character_that_can_be_written(fp32_translator: Translator) -> None:
    broken, whole = fp32_translator.translate(["Good \ud83d morning.", "Good \ufffd morning."])
    (digits,) = texts_of(fp32_translator.translate(["\ud83d 12"]))

    assert broken == whole
    assert digits == "\ufffd 12"


def test_no_texts_give_no_translations(fp32_translator: Translator) -> None:
    assert fp32_translator.translate([]) == []


def test_batches_hold_every_sentence_once_within_the_limits() -> None:
    lengths = [(index * 37) % 500 + 1 for index in range(1000)]

    grouped = list(batches(lengths))

    assert sorted(index for batch in grouped for index in batch) == list(range(1000))
    for batch in grouped:
        assert len(batch) <= MAX_ROWS
        assert len(batch) * max(lengths[index] for index in batch) <= MAX_TOKENS


def test_a_sentence_above_the_token_limit_is_a_batch_of_its_own() -> None:
    assert list(batches([MAX_TOKENS + 1, 5])) == [[0], [1]]
