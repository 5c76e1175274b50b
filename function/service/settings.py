"""The environment variables, all of them, and what the function may use of its machine.

| variable                | default      | meaning                                                        |
| ----------------------- | ------------ | -------------------------------------------------------------- |
| `MARIAN_PACK`           | `/opt/model` | folder of the model pack (the model layer puts it there)       |
| `MARIAN_THREADS`        | vCPU count   | threads of a matrix product                                    |
| `MARIAN_MAX_CHARACTERS` | 50000        | characters of `q`, all texts together, that a request may hold |
| `MARIAN_MAX_TEXTS`      | 1000         | texts that the list `q` of a request may hold                  |
| `MARIAN_RESULTS_BUCKET` |              | bucket for queue results; none: they are in the response       |
| `MARIAN_CORS_ORIGIN`    | `*`          | the origin that browsers may call from                         |
| `MARIAN_PRELOAD`        | `false`      | `true`: load the model at start, for snapshots and such        |
| `MARIAN_LOG_TEXT`       | `false`      | `true`: log texts; otherwise no text is ever logged            |
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_MEGABYTES_PER_VCPU = 1769  # https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_CGROUP_ROOT = Path("/sys/fs/cgroup")


class SettingsError(Exception):
    """An environment variable has a value that cannot be used."""


@dataclass(frozen=True)
class Settings:
    pack: Path
    threads: int
    max_characters: int
    max_texts: int
    results_bucket: str | None
    cors_origin: str
    preload: bool
    log_text: bool


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Raises: SettingsError."""
    return Settings(
        pack=Path(environment.get("MARIAN_PACK") or "/opt/model"),
        threads=_count(environment, "MARIAN_THREADS") or vcpu_count(environment),
        max_characters=_count(environment, "MARIAN_MAX_CHARACTERS") or 50_000,
        max_texts=_count(environment, "MARIAN_MAX_TEXTS") or 1_000,
        results_bucket=environment.get("MARIAN_RESULTS_BUCKET") or None,
        cors_origin=environment.get("MARIAN_CORS_ORIGIN") or "*",
        preload=_flag(environment, "MARIAN_PRELOAD"),
        log_text=_flag(environment, "MARIAN_LOG_TEXT"),
    )


def vcpu_count(environment: Mapping[str, str] = os.environ, cgroup: Path = _CGROUP_ROOT) -> int:
    """Processors that this process may use.

    The least of its affinity, its cgroup's quota and, in Lambda, the share that its memory size buys: Lambda shows
    two processors to a function that gets the time of less than one, and threads beyond the share only
    wait for each other.
    """
    limits = [float(len(os.sched_getaffinity(0)))]
    if quota := _cgroup_quota(cgroup):
        limits.append(quota)
    if memory := _count(environment, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"):
        limits.append(memory / _MEGABYTES_PER_VCPU)
    return max(1, math.floor(min(limits) + 0.5))


def _cgroup_quota(cgroup: Path) -> float | None:
    """Processors' worth of time that the cgroup allows (version 2, else 1); None without a limit."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = ((cgroup / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return None
    return int(quota) / int(period) if quota != "max" and int(quota) > 0 else None


def _count(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise SettingsError(f"{name} must be a whole number above 0, it is {text!r}.")
    return int(text)


def _flag(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name) or "false"
    if text.lower() not in ("true", "false"):
        raise SettingsError(f"{name} must be true or false, it is {text!r}.")
    return text.lower() == "true"
