"""Translating from a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.paths import ROOT, held_out

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def translate(int8_pack: Path) -> Run:
    """Runs the command; gives its finished process."""

    def run(*arguments: str, stdin: bytes = b"", pack: Path = int8_pack) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "MARIAN_PACK": str(pack)}
        command = [sys.executable, "-m", "local.translate", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, input=stdin, capture_output=True, check=False, timeout=60
        )

    return run


def test_a_text(translate: Run) -> None:
    done = translate("Where is the nearest train station?")

    assert done.returncode == 0
    assert done.stdout.decode().strip()
    assert done.stdout.endswith(b"\n")
    assert done.stderr == b""


def test_a_file_line_by_line(translate: Run, tmp_path: Path) -> None:
    sentences = [row["en"] for row in held_out("test_tatoeba")[:300]]
    file = tmp_path / "source.txt"
    file.write_text("\n".join(sentences) + "\n", "utf-8")

    from_file = translate("--file", str(file))
    from_stdin = translate(stdin=file.read_bytes())

    assert from_file.returncode == from_stdin.returncode == 0
    assert from_file.stdout == from_stdin.stdout
    lines = from_file.stdout.decode().splitlines()
    assert len(lines) == 300
    assert all(lines)
    assert b"300/300" in from_file.stderr, "no progress is shown"


def test_blank_lines_and_line_endings_stay(translate: Run) -> None:
    done = translate(stdin=b"\nGood morning.\r\n   \r\n\n-\nThank you.")

    first, second, third, fourth, fifth, last = done.stdout.split(b"\n")
    assert [first, third, fourth, fifth] == [b"", b"   \r", b"", b"-"]
    assert second.endswith(b"\r")
    assert len(second) > 1
    assert last


def test_a_line_that_is_longer_than_the_model_reads_is_translated_whole(translate: Run) -> None:
    long_line = b"one two three " * 400

    done = translate(stdin=b"Good morning.\n" + long_line + b"\nThank you.\n")

    first, second, third, _ = done.stdout.split(b"\n")
    assert second.endswith(b" "), "the space at its end stays"
    assert len(second.decode()) > 200
    assert any("\u4e00" <= character <= "\u9fff" for character in second.decode())
    assert first + b"\n" == translate("Good morning.").stdout
    assert third + b"\n" == translate("Thank you.").stdout
    assert done.returncode == 0


def test_a_line_that_is_not_utf_8_stands_as_it_was(translate: Run) -> None:
    done = translate(stdin=b"Good morning.\n\xff\xfe caf\xe9\r\n")

    assert done.stdout == translate("Good morning.").stdout + b"\xff\xfe caf\xe9\r\n"
    assert done.returncode == 1
    assert b"Line 2 stands as it was: it is not UTF-8" in done.stderr


def test_a_reader_who_has_seen_enough_is_no_error(int8_pack: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("Good morning.\n" * 3000)
    command = f"{sys.executable} -m local.translate --file {tmp_path / 'lines.txt'} | head -1"

    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env={**os.environ, "MARIAN_PACK": str(int8_pack)},
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.count(b"\n") == 1
    assert b"Traceback" not in done.stderr
    assert b"Broken" not in done.stderr


def test_no_input_gives_no_output(translate: Run) -> None:
    done = translate(stdin=b"")

    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--file", "nowhere.txt"], 2, "nowhere.txt: No such file"),
        (["text", "--file", "a.txt"], 2, "not both"),
        (["--target", "fr", "text"], 1, "fr is not supported as target"),
    ],
)
def test_wrong_arguments(translate: Run, arguments: list[str], status: int, words: str) -> None:
    done = translate(*arguments)

    assert done.returncode == status
    assert words in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_a_folder_that_is_no_pack(translate: Run, tmp_path: Path) -> None:
    done = translate("Hello.", pack=tmp_path)

    assert done.returncode == 1
    assert f"{tmp_path} is not a model pack" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
