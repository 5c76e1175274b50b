"""Greedy search over any number of sentences: which are decoded together, and on how many threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property

from function.engine.batching import batches
from function.engine.greedy import GreedySearch, Hypothesis, OutOfTime
from function.engine.pack import ModelPack
from function.engine.sessions import open_decoder, open_encoder

_MIN_SHARE = 8  # sentences a thread; with fewer, threads inside products were as fast or faster


class Searches:
    """The searches of one pack. Sessions are opened when first needed, then kept.

    Threads inside a matrix product help a few sentences; they wait for each other after every one. Many
    sentences are better shared out: one-thread searches side by side. Results are the same either way.
    """

    def __init__(self, pack: ModelPack, threads: int) -> None:
        self._pack = pack
        self._threads = threads

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
        side_by_side = self._threads > 1 and len(sentences) >= _MIN_SHARE * self._threads
        search = self._on_one_thread if side_by_side else self._on_all_threads

        def decode(batch: list[int]) -> None:
            with suppress(OutOfTime):
                source_ids = [sentences[index] for index in batch]
                found = search(
                    source_ids, is_out_of_time, gives_up_loops=gives_up_loops, forbids_repeats=forbids_repeats
                )
                for index, hypothesis in zip(batch, found, strict=True):
                    hypotheses[index] = hypothesis

        if side_by_side:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - most cold starts do without

            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(decode, batches(lengths, self._threads)))
        else:
            for batch in batches(lengths):
                decode(batch)
        return hypotheses

    @cached_property
    def _on_all_threads(self) -> GreedySearch:
        return _open(self._pack, self._threads)

    @cached_property
    def _on_one_thread(self) -> GreedySearch:
        """Safe to call from several threads at once: it computes in the calling one."""
        return _open(self._pack, 1)


def _open(pack: ModelPack, threads: int) -> GreedySearch:
    return GreedySearch(pack, open_encoder(pack, threads), open_decoder(pack, threads))
