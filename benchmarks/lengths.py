"""Packs that decode so many tokens as the benchmark wants, whatever the model would say."""

from __future__ import annotations

from dataclasses import replace

from function.engine.pack import ModelPack


def at_most(pack: ModelPack, target_tokens: int) -> ModelPack:
    """The pack, made to stop after so many target tokens, without an eos after them."""
    max_length = target_tokens + 1  # with the decoder start
    return replace(pack, generation=replace(pack.generation, max_length=max_length, forced_eos_token_id=None))


def exactly(pack: ModelPack, target_tokens: int) -> ModelPack:
    """The pack, made to give so many target tokens: eos is never chosen and the limit is there."""
    pack = at_most(pack, target_tokens)
    banned = (*pack.generation.banned_token_ids, pack.generation.eos_token_id)
    return replace(pack, generation=replace(pack.generation, banned_token_ids=banned))
