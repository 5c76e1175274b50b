"""Invoke the function with an event file under the Runtime Interface Emulator: `python -m local.invoke EVENT`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from local.emulator import HTTP_HANDLER, QUEUE_HANDLER, EmulatorError, emulator


def handler_for(event: Any) -> str:
    """The handler that takes events of this shape: records go to the queue's, everything else is HTTP."""
    return QUEUE_HANDLER if isinstance(event, dict) and "Records" in event else HTTP_HANDLER


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m local.invoke",
        description="Run the function under the Runtime Interface Emulator for one event and print its response.",
    )
    parser.add_argument("event", type=Path, help="JSON file of the event, such as those in events/")
    parser.add_argument("--timeout", type=int, default=30, help="seconds the function may take (default: %(default)s)")
    parser.add_argument("--memory", type=int, default=1769, help="megabytes it is told it has (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        content = arguments.event.read_bytes()
        event = json.loads(content)
    except OSError as error:
        print(f"{arguments.event}: {error.strerror}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"{arguments.event} is not JSON: {error}", file=sys.stderr)
        return 2
    try:
        with emulator(handler_for(event), timeout=arguments.timeout, memory=arguments.memory) as running:
            response = running.invoke(content).decode("utf-8")
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        decoded = json.loads(response)
    except ValueError:  # a timeout or a crash, told in plain text
        print(response)
        return 1
    print(json.dumps(decoded, ensure_ascii=False, indent=2))
    return 1 if "errorMessage" in decoded else 0


if __name__ == "__main__":
    sys.exit(main())
