"""The service as a new process would find it."""

from __future__ import annotations

from function.service import loading, translation


def forget_service() -> None:
    """Let the next request read the environment and open the pack again."""
    for cached in (loading.settings, loading.pack, translation.translator):
        cached.cache_clear()
