"""Work in a thread is waited for, and its errors are the caller's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from function.engine.background import Background
from tests.paths import ROOT

INTERRUPTED = """
import signal, sys, time
from function.engine.background import Background

def work():
    time.sleep(0.5)
    print("finished", flush=True)

work = Background(work)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    work.result()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


def test_the_result_is_there_each_time() -> None:
    work = Background(lambda: [1])

    assert work.result() is work.result()


def test_an_error_is_raised_each_time() -> None:
    work = Background(lambda: 1 // 0)

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            work.result()


def test_who_is_interrupted_while_waiting_ends_in_order() -> None:
    """The process waits for the thread: what that was doing outside of Python must not be torn down under it."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["interrupted", "finished"]
    assert (done.returncode, done.stderr) == (130, "")
