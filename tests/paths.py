"""Where things lie."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

ROOT = Path(__file__).parent.parent
STARTER = ROOT / "model_pack" / "starter"
REFERENCES = ROOT / "tests" / "references"

# Evaluation text and tokenizer files whose licences keep them out of the repository; tests skip without them.
SHARED = ROOT.parent / "shared"
OPUS_FILES = SHARED / "opus-files"
CORPORA = (
    "eval/ntrex128/newstest2019-src.eng.txt",
    "eval/opus-mt-en-zh-outputs/flores-dev.en",
    "eval/tico19/tico19-test.en",
)


def held_out(name: str) -> list[dict[str, str]]:
    """Rows (id, en, zh, source) of one of the starter's held-out sets, such as "test_docs"."""
    with (STARTER / "eval" / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def reference_sentences() -> dict[str, str]:
    """The 200 sentences (id -> English) that greedy search is compared on: every seventh of the test sets."""
    rows = [*held_out("test_tatoeba"), *held_out("test_docs")]
    return {row["id"]: row["en"] for row in rows[::7][:200]}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
