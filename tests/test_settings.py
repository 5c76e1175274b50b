"""Environment variables, and how many threads the function takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from function.service.settings import SettingsError, read_settings, vcpu_count


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
