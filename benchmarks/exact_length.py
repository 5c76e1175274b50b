"""Packs that decode a given number of tokens, whatever the model would say."""

from __future__ import annotations

from dataclasses import replace

from function.engine.pack import ModelPack


def exactly(pack: ModelPack, target_tokens: int) -> ModelPack:
    """The pack, made to give so many target tokens: eos is never chosen and the limit is there."""
    generation = replace(
        pack.generation,
        max_length=target_tokens + 1,  # with the decoder start
        forced_eos_token_id=None,
        banned_token_ids=(*pack.generation.banned_token_ids, pack.generation.eos_token_id),
    )
    return replace(pack, generation=generation)
