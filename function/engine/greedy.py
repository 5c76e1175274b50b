"""Greedy search: the most probable token at every step, for a batch of sentences at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from function.engine.decoding import Decoding
from function.engine.pack import Generation, ModelPack
from function.engine.repetition import forbid_repeats, is_looping

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
        generation = self._pack.generation
        decoding = Decoding(self._pack, self._encoder, self._decoder, *_pad(batch))
        current = np.full(len(batch), generation.decoder_start_token_id, np.int64)  # [B]

        token_ids: list[list[int]] = [[] for _ in batch]
        log_probabilities = np.zeros(len(batch))  # sums, one a sentence
        ended = np.zeros(len(batch), bool)
        rows = np.arange(len(batch))  # the sentence that each row of the shrinking batch decodes
        for length in range(1, generation.max_length):
            if is_out_of_time():
                raise OutOfTime
            logits, scores = decoding.step(current)
            if forbids_repeats:
                for row, sentence in enumerate(rows):
                    forbid_repeats(logits[row], token_ids[sentence])
            is_last = length == generation.max_length - 1
            chosen = choose(logits, generation, is_last=is_last)  # [rows]
            for sentence, token_id in zip(rows, chosen, strict=True):
                token_ids[sentence].append(int(token_id))
            log_probabilities[rows] += scores[np.arange(len(rows)), chosen]

            # Finished rows leave: the batch pays only for sentences that still grow.
            unfinished = chosen != generation.eos_token_id
            if not is_last:
                ended[rows] = ~unfinished
            if gives_up_loops and length % _LOOP_CHECK == 0:
                unfinished &= [not is_looping(token_ids[sentence]) for sentence in rows]
            if not unfinished.any():
                break
            current = chosen
            if not unfinished.all():
                left = decoding.keep(unfinished)
                rows, current = rows[left], current[left]
        return [
            Hypothesis(ids, float(total) / len(ids), bool(has_ended))
            for ids, total, has_ended in zip(token_ids, log_probabilities, ended, strict=True)
        ]


def choose(logits: NDArray[np.float32], generation: Generation, *, is_last: bool) -> NDArray[np.int64]:
    """The token that greedy search takes in each row.

    Args:
        logits: [rows, target ids]; those of banned tokens are overwritten.
        is_last: whether `max_length` leaves no position after this one.
    """
    if is_last and generation.forced_eos_token_id is not None:
        return np.full(len(logits), generation.forced_eos_token_id, np.int64)
    logits[:, generation.banned_token_ids] = -np.inf
    chosen: NDArray[np.int64] = logits.argmax(-1)
    return chosen


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
