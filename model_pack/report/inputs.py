"""Reads what the report shows. Figures may be missing or be new to it; a file of another kind is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from model_pack.errors import ModelPackError

MANIFEST = "manifest.json"

BASELINE = "baseline"
_REPEAT = "run the evaluation again"


@dataclass(frozen=True)
class Sentence:
    """One segment and what each system made of it; a system that gave nothing is not in `outputs`."""

    id: str
    category: str | None
    source: str
    reference: str | None
    outputs: dict[str, str]


@dataclass(frozen=True)
class SentenceSet:
    """A set of segments, with the figures of each system on it."""

    name: str
    segments: int
    figures: dict[str, dict[str, float]]  # system -> name of the figure -> value; those without a value are left out
    sentences: list[Sentence]


@dataclass(frozen=True)
class Evaluation:
    """What the evaluation has found."""

    provenance: dict[str, Any]
    sets: list[SentenceSet]
    systems: list[str]  # in the order in which they appear

    @property
    def sentences(self) -> Iterator[Sentence]:
        return (sentence for one in self.sets for sentence in one.sentences)

    @property
    def precisions(self) -> dict[str, str]:
        """Of the systems that are packs, where the provenance tells."""
        packs = _mapping(self.provenance.get("packs"))
        precisions = {name: _mapping(facts).get("precision") for name, facts in packs.items()}
        return {name: precision for name, precision in precisions.items() if isinstance(precision, str)}


@dataclass(frozen=True)
class Pack:
    """A model pack, as far as its manifest tells."""

    name: str
    manifest: dict[str, Any]

    @property
    def model_id(self) -> str:
        return str(self.section("model").get("id", self.name))

    @property
    def licence(self) -> str | None:
        licence = self.section("model").get("licence")
        return None if licence is None else str(licence)

    @property
    def precision(self) -> str:
        return str(self.section("quantization").get("precision", "unknown precision"))

    @property
    def files(self) -> dict[str, int]:
        """Sizes in bytes by file name, the largest first."""
        sizes = {name: _mapping(facts).get("size") for name, facts in self.section("files").items()}
        known = {name: size for name, size in sizes.items() if isinstance(size, int)}
        return dict(sorted(known.items(), key=lambda item: -item[1]))

    @property
    def size(self) -> int:
        return sum(self.files.values())

    @property
    def source_language(self) -> dict[str, Any]:
        return _mapping(self.section("languages").get("source"))

    @property
    def target_languages(self) -> list[dict[str, Any]]:
        targets = self.section("languages").get("targets")
        return [_mapping(target) for target in targets] if isinstance(targets, list) else []

    @property
    def languages(self) -> str:
        """In words, such as "English (en) to Chinese (Simplified) (zh-Hans)"."""

        def name(language: dict[str, Any]) -> str:
            return f"{language.get('name', '?')} ({language.get('code', '?')})"

        return f"{name(self.source_language)} to {', '.join(map(name, self.target_languages)) or '?'}"

    def section(self, name: str) -> dict[str, Any]:
        return _mapping(self.manifest.get(name))


@dataclass(frozen=True)
class Inspection:
    """What was found in the checkpoint."""

    numbers: dict[str, Any]
    remarks: list[str]


def read_evaluation(path: Path) -> Evaluation:
    """Read an evaluation.

    Raises:
        ModelPackError: the file is missing, is no evaluation, or has nothing in it to show.
    """
    content = _read_object(path, f"{_REPEAT}, or name its file")
    sets = content.get("sets")
    if not isinstance(sets, list) or not sets:
        raise ModelPackError(f"{path} holds no sets of sentences, so that there is nothing to report: {_REPEAT}.")
    read = [_sentence_set(value, f"{path}: sets[{index}]") for index, value in enumerate(sets)]
    evaluation = Evaluation(_mapping(content.get("provenance")), read, [])
    of_outputs = (system for sentence in evaluation.sentences for system in sentence.outputs)
    systems = dict.fromkeys([*(system for one in read for system in one.figures), *of_outputs])
    if not systems:
        raise ModelPackError(f"{path} holds neither outputs nor figures of any system: {_REPEAT}.")
    return replace(evaluation, systems=list(systems))


def read_inspection(path: Path) -> Inspection:
    """Read an inspection.

    Raises:
        ModelPackError: the file is missing or is no inspection.
    """
    content = _read_object(path, "run the inspection again, or leave it out")
    remarks = content.get("remarks", [])
    if not isinstance(remarks, list):
        raise ModelPackError(f"{path}: remarks is not a list; run the inspection again, or leave it out.")
    return Inspection(_mapping(content.get("numbers")), [str(remark) for remark in remarks])


def read_pack(name: str, folder: Path) -> Pack:
    """Read the manifest of a pack.

    Raises:
        ModelPackError: `folder` is not a model pack.
    """
    if not (folder / MANIFEST).is_file():
        raise ModelPackError(f"{folder} is not a model pack, it has no {MANIFEST}: name a folder that `build` made.")
    return Pack(name, _read_object(folder / MANIFEST, "build the pack again"))


def _sentence_set(value: Any, where: str) -> SentenceSet:
    content = _object(value, where)
    sentences = content.get("sentences", [])
    if not isinstance(sentences, list):
        raise ModelPackError(f"{where}.sentences is not a list: {_REPEAT}.")
    figures = {
        system: _numbers(_object(values, f"{where}.systems.{system}"))
        for system, values in _object(content.get("systems", {}), f"{where}.systems").items()
    }
    segments = content.get("segments")
    return SentenceSet(
        name=str(content.get("name", "unnamed")),
        segments=segments if isinstance(segments, int) else len(sentences),
        figures=figures,
        sentences=[_sentence(one, f"{where}.sentences[{index}]", index) for index, one in enumerate(sentences)],
    )


def _sentence(value: Any, where: str, index: int) -> Sentence:
    content = _object(value, where)
    source = content.get("source")
    if not isinstance(source, str):
        raise ModelPackError(f"{where} has no source text: {_REPEAT}.")
    outputs = _object(content.get("outputs", {}), f"{where}.outputs")
    return Sentence(
        id=str(content.get("id", index + 1)),
        category=None if content.get("category") in (None, "") else str(content["category"]),
        source=source,
        reference=None if content.get("reference") in (None, "") else str(content["reference"]),
        outputs={system: text for system, text in outputs.items() if isinstance(text, str)},
    )


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _mapping(value: Any) -> dict[str, Any]:
    """An optional object: anything else counts as an empty one."""
    return value if isinstance(value, dict) else {}


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelPackError(f"{where} is not a JSON object: {_REPEAT}.")
    return value


def _read_object(path: Path, remedy: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ModelPackError(f"there is no file {path}: {remedy}.") from error
    except OSError as error:
        raise ModelPackError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelPackError(f"{path} is not JSON ({error}): {remedy}.") from error
    if not isinstance(content, dict):
        raise ModelPackError(f"{path} does not hold a JSON object: {remedy}.")
    return content
