"""Greedy search: the most probable token at every step, for a batch of sentences at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from function.engine.decoding import Decoding
from function.engine.logits import Logits
from function.engine.pack import Generation, ModelPack
from function.engine.repetition import is_looping, repeats

_LOOP_CHECK = 8  # steps from one look for loops to the next


class OutOfTime(Exception):
    """The caller's time was up before every sentence had ended."""


@dataclass(frozen=True)
class Hypothesis:
    """What the decoder chose for one sentence."""

    token_ids: list[int]  # target ids, eos included, decoder start left out
    score: float  # mean natural-log probability of the chosen tokens, among all the model knows
    ended: bool  # whether the model itself chose eos; not when `max_length` forced it, or a loop was given up


class GreedySearch:
    """Encoder and decoder step of a pack, run to the end of every sentence.

    Gives the ids of transformers' `generate(num_beams=1, do_sample=False)` on the same checkpoint:
    banned tokens are never chosen, and the last position that `max_length` leaves takes the forced eos.
    """

    def __init__(self, pack: ModelPack, encoder: ort.InferenceSession, decoder: ort.InferenceSession) -> None:
        self._pack = pack
        self._encoder = encoder
        self._decoder = decoder

    def __call__(
        self,
        batch: list[list[int]],
        is_out_of_time: Callable[[], bool] = lambda: False,
        *,
        gives_up_loops: bool = False,
        forbids_repeats: bool = False,
    ) -> list[Hypothesis]:
        """Decode a batch.

        Args:
            batch: source ids of each sentence, eos included; at most `max_positions` each.
            is_out_of_time: asked before every step.
            gives_up_loops: whether a sentence that goes round in circles is left before `max_length` ends it.
            forbids_repeats: whether no two tokens may follow each other twice in a sentence.

        Returns:
            One hypothesis a sentence, in the batch's order.

        Raises:
            OutOfTime: it said so.
        """
        if is_out_of_time():
            raise OutOfTime
        # Of the few rows there are, Python's own numbers and lists are faster than arrays; every step waits for them.
        generation = self._pack.generation
        decoding = Decoding(self._pack, self._encoder, self._decoder, *_pad(batch))
        token_ids: list[list[int]] = [[] for _ in batch]
        log_probabilities = [0.0] * len(batch)  # sums, one a sentence
        ended = [False] * len(batch)
        rows = list(range(len(batch)))  # the sentence that each row of the shrinking batch decodes
        current = [generation.decoder_start_token_id] * len(batch)
        for length in range(1, generation.max_length):
            if is_out_of_time():
                raise OutOfTime
            logits = decoding.step(current)
            if forbids_repeats:
                for row, sentence in enumerate(rows):
                    logits.forbid(repeats(token_ids[sentence]), row)
            is_last = length == generation.max_length - 1
            current = choose(logits, generation, is_last=is_last)
            for row, (sentence, token_id) in enumerate(zip(rows, current, strict=True)):
                token_ids[sentence].append(token_id)
                log_probabilities[sentence] += logits.log_probability(row, token_id)

            # Finished rows leave: the batch pays only for sentences that still grow.
            unfinished = [token_id != generation.eos_token_id for token_id in current]
            if not is_last and not all(unfinished):
                for sentence, is_unfinished in zip(rows, unfinished, strict=True):
                    ended[sentence] = not is_unfinished
            if gives_up_loops and length % _LOOP_CHECK == 0:
                unfinished = [
                    is_unfinished and not is_looping(token_ids[sentence])
                    for sentence, is_unfinished in zip(rows, unfinished, strict=True)
                ]
            if not any(unfinished):
                break
            if not all(unfinished):
                left = decoding.keep(unfinished)
                rows, current = [rows[row] for row in left], [current[row] for row in left]
        return [
            Hypothesis(ids, total / len(ids), has_ended)
            for ids, total, has_ended in zip(token_ids, log_probabilities, ended, strict=True)
        ]


def choose(logits: Logits, generation: Generation, *, is_last: bool) -> list[int]:
    """The token that greedy search takes in each row.

    Args:
        logits: those of banned tokens are overwritten.
        is_last: whether `max_length` leaves no position after this one.
    """
    if is_last and generation.forced_eos_token_id is not None:
        return [generation.forced_eos_token_id] * logits.rows
    logits.forbid(generation.banned_token_ids)
    return logits.best()


def _pad(batch: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Source ids padded to a common length, and the mask that is 1 where a token stands.

    Padding takes id 0: the mask keeps it out of every result, so its value is of no account.
    """
    longest = max(map(len, batch))
    source_ids = np.zeros((len(batch), longest), np.int64)
    attention_mask = np.zeros((len(batch), longest), np.int32)
    for row, ids in enumerate(batch):
        source_ids[row, : len(ids)] = ids
        attention_mask[row, : len(ids)] = 1
    return source_ids, attention_mask
