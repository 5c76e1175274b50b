"""Texts in, translations out: what ties the pack, the tokenizer, the sessions and the search together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from function.engine.pack import Language, ModelPack
from function.engine.searches import Searches
from function.engine.tokenizer import Tokenizer


@dataclass(frozen=True)
class Translation:
    """One text, translated.

    `score` is the mean natural-log probability of the target tokens, eos included; None for a text
    that came back as it was because there is nothing in it to translate.
    """

    text: str
    score: float | None
    source_tokens: int
    target_tokens: int


class TextError(Exception):
    """One text cannot be translated; the message says why and what its sender can do."""


class Unfinished(TextError):
    """Time was up before this text was translated; it may well be another time."""


class Translator:
    """Translates with one pack. The tokenizer and the sessions are created when first needed, then kept.

    Args:
        pack: an opened pack.
        threads: how many processors a matrix product may use.
    """

    def __init__(self, pack: ModelPack, threads: int) -> None:
        self.pack = pack
        self._threads = threads

    def translate(
        self,
        texts: Sequence[str],
        targets: Sequence[Language] | None = None,
        is_out_of_time: Callable[[], bool] = lambda: False,
    ) -> list[Translation | TextError]:
        """Translate texts together, each one segment.

        Args:
            texts: in the pack's source language.
            targets: the language that each becomes; the pack's first by default.
            is_out_of_time: asked at every step; when it says so, texts that are not translated become `Unfinished`.

        A text that cannot be translated takes its own place in the result as a `TextError` (returned,
        not raised), so that it costs its neighbours nothing. A text without a letter comes back as it is.

        Raises:
            PackError: the pack's graphs cannot be loaded.
        """
        targets = targets or [self.pack.targets[0]] * len(texts)
        texts = [_replace_lone_surrogates(text) for text in texts]
        results: list[Translation | TextError] = [Translation(text, None, 0, 0) for text in texts]
        pending = [index for index, text in enumerate(texts) if any(map(str.isalpha, text))]
        source_ids: dict[int, list[int]] = {}
        for index in pending:
            ids = self._tokenizer.encode_text(texts[index], targets[index].token)
            if len(ids) > self.pack.network.max_positions:
                results[index] = TextError(
                    f"a text of {len(ids)} tokens is longer than the {self.pack.network.max_positions} "
                    "that the model reads at once: send it in parts."
                )
            else:
                source_ids[index] = ids

        if not source_ids:
            return results
        hypotheses = self._search(list(source_ids.values()), is_out_of_time)
        for (index, ids), hypothesis in zip(source_ids.items(), hypotheses, strict=True):
            if hypothesis is None:
                results[index] = Unfinished("there was not enough time to translate this much text.")
            else:
                text = self._tokenizer.decode(hypothesis.token_ids)
                results[index] = Translation(text, hypothesis.score, len(ids), len(hypothesis.token_ids))
        return results

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self.pack)

    @cached_property
    def _search(self) -> Searches:
        return Searches(self.pack, self._threads)


def _replace_lone_surrogates(text: str) -> str:
    """Half a surrogate pair, which JSON may smuggle in, has no UTF-8: U+FFFD takes its place."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
