"""Retouching files of translations from a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

SOURCE = b"It rains, but it is warm.\nGood morning.\n\nWho is Anna?\n"
TARGET = "下雨,但很暖和.\n早安\n\nAnna是谁?\n".encode()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "source.en", tmp_path / "target.zh"
    source.write_bytes(SOURCE)
    target.write_bytes(TARGET)
    return source, target


def retouch(source: Path, target: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "local.retouch", "--source", str(source), "--target", str(target), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=60)


def test_each_line_is_retouched_with_the_help_of_its_source(files: tuple[Path, Path]) -> None:
    done = retouch(*files)

    assert done.returncode == 0
    assert done.stdout.decode() == "下雨，但很暖和。\n早安。\n\nAnna是谁？\n"
    assert done.stderr == b""


def test_trace_tells_what_was_changed_and_where(files: tuple[Path, Path]) -> None:
    done = retouch(*files, "--trace")

    assert done.stdout == retouch(*files).stdout
    trace = done.stderr.decode()
    assert "line 1, typography:\n- 下雨,但很暖和.\n+ 下雨，但很暖和。\n" in trace
    assert "line 4" in trace
    assert "line 3" not in trace


@pytest.mark.parametrize("extra", [1, 2])
def test_files_of_unlike_length_are_refused_before_anything_is_printed(files: tuple[Path, Path], extra: int) -> None:
    source, target = files
    source.write_bytes(SOURCE + b"One more.\n" * extra)

    done = retouch(source, target)

    assert done.returncode == 2
    assert done.stdout == b""
    assert f"source has {4 + extra} lines and the target 4" in done.stderr.decode()
    assert retouch(target, source).returncode == 2


def test_pipes_of_unlike_length_are_refused_too(files: tuple[Path, Path], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"printf 'a\\nb\\nc\\nd\\ne\\n' > {pipe}"]):
        done = retouch(pipe, files[1])

    assert done.returncode == 2
    assert "5 lines" in done.stderr.decode()
    assert done.stdout.decode().startswith("下雨，但很暖和")


def test_line_endings_stay_and_byte_order_marks_go(files: tuple[Path, Path]) -> None:
    source, target = files
    source.write_bytes(b"\xef\xbb\xbf" + SOURCE.replace(b"\n", b"\r\n").rstrip())
    target.write_bytes(b"\xef\xbb\xbf" + TARGET.replace(b"\n", b"\r\n").rstrip())

    done = retouch(source, target)

    assert done.returncode == 0
    assert done.stdout.decode() == "下雨，但很暖和。\r\n早安。\r\n\r\nAnna是谁？"


def test_line_separators_within_a_line_do_not_end_it(files: tuple[Path, Path]) -> None:
    source, target = files
    source.write_bytes(b"One.\nTwo.\n")
    target.write_bytes("一\u2028二\x0b三\x85四\r五\n二\n".encode())

    assert retouch(source, target).stdout.decode() == "一\u2028二\x0b三\x85四\r五。\n二。\n"


def test_a_line_that_is_not_utf8_stands_as_it_was(files: tuple[Path, Path]) -> None:
    source, target = files
    source.write_bytes(b"One.\nTwo.\n")
    target.write_bytes(b"\xff\xfe,\n" + "二\n".encode())

    done = retouch(source, target)

    assert done.returncode == 0
    assert done.stdout == b"\xff\xfe,\n" + "二。\n".encode()
    assert "Line 1" in done.stderr.decode()


def test_traditional_lines_get_their_quotation_marks(files: tuple[Path, Path]) -> None:
    source, target = files
    source.write_bytes(b'They call it a "green card".\nThey call it a "green card".\n')
    target.write_bytes('他們說這叫"綠卡".\n他们说这叫"绿卡".\n'.encode())

    assert retouch(source, target).stdout.decode() == "他們說這叫「綠卡」。\n他们说这叫“绿卡”。\n"


def test_help_and_missing_files(files: tuple[Path, Path], tmp_path: Path) -> None:
    done = retouch(files[0], tmp_path / "missing")

    assert done.returncode == 2
    assert "missing" in done.stderr.decode()
    assert b"--trace" in retouch(*files, "--help").stdout


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    source, target = tmp_path / "source.en", tmp_path / "target.zh"
    source.write_bytes(b"It rains, but it is warm.\n" * 100_000)
    target.write_bytes("下雨,但很暖和,我们去公园.\n".encode() * 100_000)
    program = (
        "import pathlib, resource, sys\n"
        "from local.retouch import retouch_files\n"
        "lines = retouch_files(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), lambda *_: None)\n"
        "next(lines)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "count = 1 + sum(1 for _ in lines)\n"
        "print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(source), str(target)],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    )

    count, kilobytes = map(int, done.stdout.split())
    assert count == 100_000
    assert kilobytes < 2_000
