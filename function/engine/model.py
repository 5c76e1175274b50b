"""The model as such: plain sentences in, what it decodes out. No stage before or after it, whatever comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from function.engine.pack import ModelPack
from function.engine.searches import Searches
from function.engine.tokenizer import Tokenizer
from function.text.draft import Draft


class Model:
    """A pack's tokenizer and searches, created when first needed, then kept.

    Args:
        pack: an opened pack.
        threads: how many processors may be used.
    """

    def __init__(self, pack: ModelPack, threads: int) -> None:
        self.pack = pack
        self._threads = threads

    def fits(self, text: str, language_token: str | None = None) -> bool:
        """Whether the model can read a text at once."""
        if text.isascii() and len(text) <= self.pack.network.max_positions - 3:
            return True  # a piece has a character or more; beside them stand U+2581, a language token and eos
        return len(self._tokenizer.encode_text(text, language_token)) <= self.pack.network.max_positions

    def decode(
        self,
        texts: Sequence[str],
        language_token: str | None = None,
        is_out_of_time: Callable[[], bool] = lambda: False,
        *,
        gives_up_loops: bool = False,
        forbids_repeats: bool = False,
    ) -> list[Draft]:
        """What the model makes of each text by greedy search.

        Args:
            texts: that fit.
            language_token: the source token that asks for the target language; None where none is needed.
            is_out_of_time: asked at every decoder step; when it says so, drafts are left unfinished.
            gives_up_loops, forbids_repeats: as GreedySearch.

        Raises:
            PackError: the pack's graphs cannot be loaded, or its weights are not those of its manifest.
        """
        self._search.prepare(len(texts))
        source_ids = [self._tokenizer.encode_text(text, language_token) for text in texts]
        hypotheses = self._search(
            source_ids, is_out_of_time, gives_up_loops=gives_up_loops, forbids_repeats=forbids_repeats
        )
        self.pack.confirm()
        drafts: list[Draft] = []
        for ids, hypothesis in zip(source_ids, hypotheses, strict=True):
            if hypothesis is None:
                drafts.append(Draft("", is_finished=False))
                continue
            text, length = self._tokenizer.decode(hypothesis.token_ids), len(hypothesis.token_ids)
            drafts.append(
                Draft(
                    text,
                    log_probability=hypothesis.score * length,
                    source_tokens=len(ids),
                    target_tokens=length,
                    has_ended=hypothesis.ended,
                    steps=(("decode", text),),
                )
            )
        return drafts

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self.pack)

    @cached_property
    def _search(self) -> Searches:
        return Searches(self.pack, self._threads)
