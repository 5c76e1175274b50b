"""Tables of figures and of facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model_pack.report import wording
from model_pack.report.inputs import Evaluation, Inspection, Pack


@dataclass(frozen=True)
class Table:
    """A table of figures; the first cell of a row is its heading."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: bool = True
    total: bool = False  # whether the last row says what the others come to


def figures_table(evaluation: Evaluation) -> Table | None:
    present = dict.fromkeys(name for one in evaluation.sets for figures in one.figures.values() for name in figures)
    names = [
        *(name for name in wording.FIGURES if name in present),
        *(name for name in present if name not in wording.FIGURES),
    ]
    if not names:
        return None
    rows = [
        [f"{one.name}, {wording.system_name(system)}", *(wording.figure(one.figures[system], name) for name in names)]
        for one in evaluation.sets
        for system in evaluation.systems
        if system in one.figures
    ]
    labels = [wording.FIGURES[name].label if name in wording.FIGURES else name.replace("_", " ") for name in names]
    return Table("All figures", ["set, system", *labels], rows)


def fact_tables(evaluation: Evaluation, packs: Sequence[Pack], inspection: Inspection | None) -> list[Table]:
    tables = []
    if inspection and inspection.numbers:
        numbers = wording.flattened(inspection.numbers).items()
        tables.append(Table("Checkpoint", ["number", "value"], [list(item) for item in numbers], numeric=False))
    if packs:
        tables.append(Table("Packs", ["", *(pack.name for pack in packs)], _pack_facts(packs), numeric=False))
    if evaluation.provenance:
        items = wording.flattened(evaluation.provenance).items()
        tables.append(Table("Provenance of the evaluation", ["", "value"], [list(i) for i in items], numeric=False))
    return tables


def _pack_facts(packs: Sequence[Pack]) -> list[list[str]]:
    rows = [
        ["model", *(pack.model_id for pack in packs)],
        ["licence", *(pack.licence or "not stated" for pack in packs)],
        ["languages", *(pack.languages for pack in packs)],
    ]
    for section in ("quantization", "network", "generation", "tokenizer", "tools"):
        facts = [wording.flattened(pack.section(section), f"{section}: ") for pack in packs]
        names = dict.fromkeys(name for one in facts for name in one)
        rows += [[name, *(one.get(name, "–") for one in facts)] for name in names]
    return rows
