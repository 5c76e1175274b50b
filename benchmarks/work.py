"""What a worker process can be asked to do, and what it answers: one line of JSON each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.records import from_json


@dataclass(frozen=True)
class Decode:
    """Source ids, decoded greedily into exactly `target_tokens` tokens each.

    `max_batch_size` is CTranslate2's option of that name; 0 leaves the batch whole.
    """

    sources: list[list[int]]
    target_tokens: int
    max_batch_size: int = 0


MOST_TOKENS = 96  # no everyday sentence has so many: a model that says one in circles is stopped, whichever it is


@dataclass(frozen=True)
class Translate:
    """Texts to texts, greedily: exactly `target_tokens` tokens, or to the end that the model finds, or MOST_TOKENS."""

    texts: list[str]
    together: bool
    target_tokens: int | None = None
    max_batch_size: int = 0


@dataclass(frozen=True)
class Steps:
    """The decoder's graph alone, one row, `past_tokens` behind it: `repeats` times."""

    source_tokens: int
    past_tokens: int
    repeats: int


@dataclass(frozen=True)
class Products:
    """The matrix products of the decoder's graph without anything between them, one row: `repeats` times."""

    repeats: int


@dataclass(frozen=True)
class Read:
    """So many bytes of memory, read from end to end: `repeats` times."""

    bytes: int
    repeats: int


Work = Decode | Translate | Steps | Products | Read
KINDS: dict[str, type[Decode] | type[Translate] | type[Steps] | type[Products] | type[Read]] = {
    kind.__name__: kind for kind in (Decode, Translate, Steps, Products, Read)
}


@dataclass(frozen=True)
class Output:
    """What a piece of work gave: target tokens of each sentence where ids were asked for, texts where texts were."""

    lengths: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """One run of the prepared work, as the worker process timed it.

    Attributes:
        cpu_seconds: of all threads of the process; shows how many of them worked.
        peak_rss_mb: the most memory that the process has had resident so far, in 10^6 bytes.
    """

    seconds: float
    cpu_seconds: float
    peak_rss_mb: float
    output: Output


def to_message(work: Work) -> dict[str, Any]:
    return {"kind": type(work).__name__, **asdict(work)}


def from_message(message: dict[str, Any]) -> Work:
    """Raises: KeyError, for a kind of work that there is not."""
    return from_json(KINDS[message["kind"]], message)
