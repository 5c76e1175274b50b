"""Greedy search over any number of sentences: which are decoded together, and on how many threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import onnxruntime as ort

from function.engine.background import Background
from function.engine.batching import batches
from function.engine.greedy import GreedySearch, Hypothesis, OutOfTime
from function.engine.pack import ModelPack
from function.engine.sessions import open_decoder, open_encoder

_MIN_SHARE = 4  # sentences a thread; with fewer, threads inside products are as fast


class Searches:
    """The searches of one pack. Sessions are opened when first needed, then kept.

    Threads inside a matrix product help a few sentences; they wait for each other after every one. Many
    sentences are better shared out: one-thread searches side by side. Results are the same either way.
    """

    def __init__(self, pack: ModelPack, threads: int) -> None:
        self.pack = pack
        self._threads = threads
        # Encoder and decoder, by the threads of a search.
        self._opened: dict[int, tuple[ort.InferenceSession, Background[ort.InferenceSession]]] = {}

    def prepare(self, sentences: int) -> None:
        """Open the sessions that so many sentences will take: the encoder, and in a thread the decoder.

        The decoder takes about as long as the encoder and a tokenizer together.

        Raises:
            PackError: the pack's graphs cannot be loaded.
        """
        threads = self._threads_of_a_search(sentences)
        if threads not in self._opened:
            decoder = Background(lambda: open_decoder(self.pack, threads))
            self._opened[threads] = open_encoder(self.pack, threads), decoder

    def __call__(
        self,
        sentences: Sequence[list[int]],
        is_out_of_time: Callable[[], bool],
        *,
        gives_up_loops: bool = False,
        forbids_repeats: bool = False,
    ) -> list[Hypothesis | None]:
        """Decode sentences, given as source ids; with options as GreedySearch has them.

        Returns:
            Their hypotheses in the same order; None for a sentence that was not decoded when time was up.

        Raises:
            PackError: the pack's graphs cannot be loaded.
        """
        hypotheses: list[Hypothesis | None] = [None] * len(sentences)
        lengths = [len(ids) for ids in sentences]
        search = self._search(len(sentences))

        def decode(batch: list[int]) -> None:
            with suppress(OutOfTime):
                source_ids = [sentences[index] for index in batch]
                found = search(
                    source_ids, is_out_of_time, gives_up_loops=gives_up_loops, forbids_repeats=forbids_repeats
                )
                for index, hypothesis in zip(batch, found, strict=True):
                    hypotheses[index] = hypothesis

        if self._are_side_by_side(len(sentences)):
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - most cold starts do without

            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(decode, batches(lengths, self._threads)))
        else:
            for batch in batches(lengths):
                decode(batch)
        return hypotheses

    def _search(self, sentences: int) -> GreedySearch:
        """What so many sentences take. If side by side, it computes in whichever thread calls it."""
        self.prepare(sentences)
        threads = self._threads_of_a_search(sentences)
        encoder, decoder = self._opened[threads]
        return GreedySearch(self.pack, encoder, decoder.result())

    def _are_side_by_side(self, sentences: int) -> bool:
        return self._threads > 1 and sentences >= _MIN_SHARE * self._threads

    def _threads_of_a_search(self, sentences: int) -> int:
        return 1 if self._are_side_by_side(sentences) else self._threads
