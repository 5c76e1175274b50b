"""What a process has once: its settings and its pack, read when first asked for.

Imports little, so that handlers can begin with it: the pack's weights are checked in a thread while the
modules load that will use them.
"""

from __future__ import annotations

from functools import cache

from function.engine.pack import ModelPack, PackError
from function.service.settings import Settings, SettingsError, read_settings


@cache
def settings() -> Settings:
    """Raises: SettingsError."""
    return read_settings()


@cache
def pack() -> ModelPack:
    """The pack, its weights perhaps still to be confirmed.

    Raises:
        PackError, SettingsError: it cannot be opened.
    """
    return ModelPack.open(settings().pack, wait=False)


def confirmed_pack() -> ModelPack:
    """The pack, every file of it known to be right.

    Raises:
        PackError, SettingsError: it cannot be opened, or its weights are not its manifest's.
    """
    try:
        pack().confirm()
    except PackError:
        pack.cache_clear()  # so that the next request tries again
        raise
    return pack()


def begin_loading() -> None:
    """Open the pack. If that fails, each request will fail, and say why."""
    try:
        pack()
    except (PackError, SettingsError):
        return
