"""Run finished translations through the stages that follow decoding: `python -m local.retouch`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from function.text.script import script_of
from function.text.typography import Style, typeset

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Mismatch(Exception):
    """The two files do not have as many lines; the message says how many each has."""


def typography(target: str, source: str) -> str:
    """Typeset a line in the script that it is written in."""
    return typeset(target, source, Style(script_of(target) or "Hans"))


# Each takes a target and the source it was translated from, and gives the target that the next one takes.
STAGES: tuple[Callable[[str, str], str], ...] = (typography,)


def retouch_files(source: Path, target: Path, trace: Callable[[int, str, str, str], None]) -> Iterator[bytes]:
    """Retouch the lines of a file, each beside the line of the source that it was translated from.

    Lines end at line feeds only. Their endings stay, a byte order mark goes, and a line that is not UTF-8 is
    left as it is.

    Args:
        source: file of English sentences.
        target: file of their translations.
        trace: told of every change: line number from 1, name of the stage, text before and after.

    Yields:
        One line for each line of the target.

    Raises:
        Mismatch: the files do not have as many lines. Nothing has been yielded then, if both are regular files.
        OSError: a file cannot be read.
    """
    if source.is_file() and target.is_file():  # pipes can be read but once
        _check_counts(_count_lines(source), _count_lines(target))
    with ExitStack() as stack:
        sources, targets = (_lines(stack.enter_context(path.open("rb"))) for path in (source, target))
        for number, (source_line, target_line) in enumerate(zip_longest(sources, targets), start=1):
            if source_line is None or target_line is None:
                read = number - 1  # of the shorter file; what the other has besides is counted
                _check_counts(
                    read if source_line is None else number + sum(1 for _ in sources),
                    read if target_line is None else number + sum(1 for _ in targets),
                )
            yield _retouch_line(number, source_line, target_line, trace)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m local.retouch",
        description="Retouch translations as the function does after decoding, line by line, to standard output.",
    )
    parser.add_argument("--source", type=Path, required=True, help="file of English sentences, one a line")
    parser.add_argument("--target", type=Path, required=True, help="file of their Chinese translations, one a line")
    parser.add_argument("--trace", action="store_true", help="show on standard error what each stage changed")
    arguments = parser.parse_args()
    try:
        for line in retouch_files(arguments.source, arguments.target, _show if arguments.trace else _ignore):
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except Mismatch as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _retouch_line(number: int, source: bytes, target: bytes, trace: Callable[[int, str, str, str], None]) -> bytes:
    content = target.rstrip(b"\r\n")
    try:
        text, source_text = content.decode("utf-8"), source.decode("utf-8").strip()
    except UnicodeDecodeError:
        print(f"Line {number} stands as it was: it is not UTF-8", file=sys.stderr)
        return target
    for stage in STAGES:
        before, text = text, stage(text, source_text)
        if text != before:
            trace(number, stage.__name__, before, text)
    return text.encode("utf-8") + target[len(content) :]


def _check_counts(sources: int, targets: int) -> None:
    if sources != targets:
        raise Mismatch(f"The source has {sources} lines and the target {targets}: they must be each other's.")


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The file's lines, without the byte order mark that the first may begin with."""
    for line in file:
        yield line.removeprefix(_BYTE_ORDER_MARK)
        break
    yield from file


def _show(number: int, stage: str, before: str, after: str) -> None:
    sys.stderr.buffer.write(f"line {number}, {stage}:\n- {before}\n+ {after}\n".encode())


def _ignore(number: int, stage: str, before: str, after: str) -> None:
    """Changes are not shown."""


if __name__ == "__main__":
    sys.exit(main())
