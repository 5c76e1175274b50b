"""What make's targets run, for the variables that a person sets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ([], '--model "Helsinki-NLP/opus-mt-en-zh"'),
        (["MODEL=some/model", "REVISION=abc"], '--model "some/model" --revision "abc"'),
        (["CHECKPOINT=some/folder"], '--checkpoint "some/folder"'),
    ],
)
def test_a_model_pack_is_made_of_what_was_named(variables: list[str], expected: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "model-pack", *variables], cwd=ROOT, capture_output=True, text=True, check=True
    )

    (command,) = (line for line in done.stdout.splitlines() if "-m model_pack pack" in line)
    assert command.split("-m model_pack pack ")[1].strip() == expected


def test_what_sam_uploads_is_the_whole_function(tmp_path: Path) -> None:
    subprocess.run(
        ["make", "-s", "-C", "function", "build-HttpFunction", f"ARTIFACTS_DIR={tmp_path}"], cwd=ROOT, check=True
    )

    def modules(folder: Path) -> set[str]:
        return {path.relative_to(folder).as_posix() for path in (folder / "function").rglob("*.py")}

    assert modules(tmp_path) == modules(ROOT)
