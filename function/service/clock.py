"""How much time an invocation has left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def out_of_time_check(context: Any, reserve_seconds: float) -> Callable[[], bool]:
    """A function that tells whether less than the reserve is left of the invocation's time.

    Args:
        context: Lambda's; anything without `get_remaining_time_in_millis` has all the time there is.
    """
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    if remaining is None:
        return lambda: False
    deadline = time.monotonic() + remaining() / 1000 - reserve_seconds
    return lambda: time.monotonic() > deadline
