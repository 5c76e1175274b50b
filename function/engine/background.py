"""Work in a thread of its own, while the caller does something else."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Background(Generic[Result]):
    """A function that has begun to run when this is made. A process that ends waits for it."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function = function
        self._error: Exception | None = None
        self._is_done = Event()
        Thread(target=self._run).start()

    def result(self) -> Result:
        """Wait for it; what it raised is raised here, each time."""
        self._is_done.wait()  # and not `join`: interrupted, CPython 3.11 would take the thread for one that has ended
        if self._error:
            raise self._error
        return self._result

    def _run(self) -> None:
        try:
            self._result = self._function()
        except Exception as error:  # handed to whoever asks for the result
            self._error = error
        finally:
            self._is_done.set()
