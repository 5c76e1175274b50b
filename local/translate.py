"""Translate text, a file or standard input through the handler that Lambda calls: `python -m local.translate`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tqdm import tqdm

from function.http_handler import handler

LINES_PER_REQUEST = 256  # enough to batch by length, few enough that results come as the work goes on
CHARACTERS_PER_REQUEST = 20_000


class Refused(Exception):
    """The handler answered with an error; the message is the handler's."""


def call(method: str, path: str, fields: dict[str, Any] | None = None) -> Any:
    """Send one request to the handler, as API Gateway does.

    Raises:
        Refused: the answer is an error.
    """
    event = {
        "version": "2.0",
        "rawPath": path,
        "headers": {"content-type": "application/json"},
        "requestContext": {"http": {"method": method}, "stage": "$default"},
        "body": json.dumps(fields) if fields is not None else None,
        "isBase64Encoded": False,
    }
    response = handler(event, None)
    content = json.loads(response["body"])
    if response["statusCode"] != 200:
        raise Refused(content["error"])
    return content


def translate_lines(
    lines: Iterable[str], source: str, target: str, lines_per_request: int = LINES_PER_REQUEST
) -> Iterator[tuple[str, str | None]]:
    """Translate lines in order.

    Yields:
        The line that each line becomes, and None; or the line itself and the reason that it was refused.
    """
    for chunk in _chunks(lines, lines_per_request):
        fields = {"source": source, "target": target}
        try:
            texts = call("POST", "/translate", {**fields, "q": chunk})["translatedText"]
            yield from ((text, None) for text in texts)
        except Refused as error:
            if len(chunk) == 1:
                yield chunk[0], str(error)
            else:  # one line may be to blame: each gets a request of its own
                for line in chunk:
                    yield from translate_lines([line], source, target)


def _chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    chunk: list[str] = []
    characters = 0
    for line in lines:
        if chunk and (len(chunk) == size or characters + len(line) > CHARACTERS_PER_REQUEST):
            yield chunk
            chunk, characters = [], 0
        chunk.append(line)
        characters += len(line)
    if chunk:
        yield chunk


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m local.translate",
        description="Translate a text, or a file or standard input line by line, with the pack of MARIAN_PACK.",
    )
    parser.add_argument("text", nargs="?", help="text to translate")
    parser.add_argument("--file", type=Path, help="file to translate line by line (default: standard input)")
    parser.add_argument("--source", help="language code of the text (default: the pack's)")
    parser.add_argument("--target", help="language code to translate to (default: the pack's first)")
    arguments = parser.parse_args()
    if arguments.text is not None and arguments.file is not None:
        parser.error("give a text or --file, not both")
    try:
        languages = call("GET", "/languages")
        source = arguments.source or languages[0]["code"]
        target = arguments.target or languages[0]["targets"][0]
        if arguments.text is not None:
            print(
                call("POST", "/translate", {"q": arguments.text, "source": source, "target": target})["translatedText"]
            )
            return 0
        if arguments.file is None:
            return _translate_stream(sys.stdin.buffer, source, target, total=None)
        with arguments.file.open("rb") as file:
            return _translate_stream(file, source, target, total=_count_lines(arguments.file))
    except Refused as error:
        print(f"Not translated: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted; every line printed so far is complete.", file=sys.stderr)
        return 130


def _translate_stream(stream: BinaryIO, source: str, target: str, total: int | None) -> int:
    """Write each line of `stream`, translated, to standard output with its line ending as it was."""
    lines: deque[_Line] = deque()  # read, but not yet written

    def contents() -> Iterator[str]:
        for raw in stream:
            lines.append(_Line(raw))
            yield lines[-1].content or ""

    interactive = stream.isatty()
    if interactive:
        print("Type lines to translate; Ctrl-D ends.", file=sys.stderr)
    refused = 0
    results = translate_lines(contents(), source, target, lines_per_request=1 if interactive else LINES_PER_REQUEST)
    show = total is not None and not sys.stdout.isatty()
    for number, (text, reason) in enumerate(tqdm(results, total=total, unit="line", disable=not show), start=1):
        line = lines.popleft()
        if line.content is None or reason is not None:
            refused += 1
            print(f"Line {number} stands as it was: {reason or 'it is not UTF-8'}", file=sys.stderr)
            sys.stdout.buffer.write(line.raw)
        else:
            sys.stdout.buffer.write(text.encode("utf-8") + line.ending)
        sys.stdout.buffer.flush()
    return 1 if refused else 0


class _Line:
    """A line as it came: all of it, its ending, and its content as text (None when it is not UTF-8)."""

    def __init__(self, raw: bytes) -> None:
        content = raw.rstrip(b"\r\n")
        self.raw = raw
        self.ending = raw[len(content) :]
        try:
            self.content: str | None = content.decode("utf-8")
        except UnicodeDecodeError:
            self.content = None


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


if __name__ == "__main__":
    sys.exit(main())
