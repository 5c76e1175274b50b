"""Environment variables, and how many threads the function takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from function.service.settings import SettingsError, read_settings, vcpu_count
from tests.paths import ROOT


def cgroup_v2(folder: Path, content: str) -> Path:
    (folder / "cpu.max").write_text(content)
    return folder


def cgroup_v1(folder: Path, quota: int, period: int) -> Path:
    (folder / "cpu").mkdir()
    (folder / "cpu" / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (folder / "cpu" / "cpu.cfs_period_us").write_text(f"{period}\n")
    return folder


@pytest.fixture(autouse=True)
def eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.parametrize(
    ("memory", "threads"), [(512, 1), (1769, 1), (2048, 1), (3008, 2), (3538, 2), (5307, 3), (7076, 4), (10240, 6)]
)
def test_threads_follow_the_share_that_memory_buys(tmp_path: Path, memory: int, threads: int) -> None:
    assert vcpu_count({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory)}, tmp_path) == threads


def test_every_memory_size_of_lambda_gets_the_processors_it_pays_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lambda shows 2 to 6 processors, whatever the size; 1,769 MB buy the time of one."""
    counts = []
    for memory in range(128, 10_240 + 1):
        visible = next(
            count for count, most in ((2, 3008), (3, 5307), (4, 7076), (5, 8845), (6, 10_240)) if memory <= most
        )
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, visible=visible: set(range(visible)))
        counts.append(vcpu_count({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory)}, tmp_path))

    assert counts == sorted(counts)
    assert (counts[0], counts[-1], set(counts)) == (1, 6, {1, 2, 3, 4, 5, 6})
    shares = [memory / 1769 for memory in range(128, 10_240 + 1)]
    assert all(abs(count - share) <= 0.5 or count == 1 for count, share in zip(counts, shares, strict=True))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is but one processor to be limited to")
def test_a_process_limited_to_one_processor_takes_one_thread_and_says_nothing(int8_pack: Path) -> None:
    program = (
        "import os\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from function.service.loading import settings\n"
        "from function.service.translation import translator\n"
        "assert settings().threads == 1\n"
        "print(translator().translate(['Good morning.'] * 20)[0].text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "MARIAN_PACK": str(int8_pack)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_without_any_limit_threads_are_the_affinitys(tmp_path: Path) -> None:
    assert vcpu_count({}, tmp_path) == 8
    assert vcpu_count({}, cgroup_v2(tmp_path, "max 100000\n")) == 8


def test_threads_stay_within_a_cgroup_quota(tmp_path: Path) -> None:
    assert vcpu_count({}, cgroup_v2(tmp_path, "200000 100000\n")) == 2
    (tmp_path / "cpu.max").unlink()
    assert vcpu_count({}, cgroup_v1(tmp_path, 300_000, 100_000)) == 3
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert vcpu_count({}, tmp_path) == 8


def test_defaults() -> None:
    settings = read_settings({})

    assert settings.pack == Path("/opt/model")
    assert (settings.max_characters, settings.max_texts) == (50_000, 1_000)


def test_variables_override_the_defaults() -> None:
    settings = read_settings(
        {"MARIAN_PACK": "p", "MARIAN_THREADS": "3", "MARIAN_MAX_CHARACTERS": "7", "MARIAN_MAX_TEXTS": "2"}
    )

    assert (settings.pack, settings.threads) == (Path("p"), 3)
    assert (settings.max_characters, settings.max_texts) == (7, 2)


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", " 1", "²"])
def test_a_value_that_is_no_count_is_refused_by_name(value: str) -> None:
    with pytest.raises(SettingsError, match="MARIAN_THREADS must be a whole number above 0"):
        read_settings({"MARIAN_THREADS": value})
