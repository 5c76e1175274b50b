"""Lays the page out."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import jinja2
from markupsafe import Markup

from model_pack.report import wording
from model_pack.report.comparison import Contest, judge
from model_pack.report.inputs import Evaluation, Inspection, Pack
from model_pack.report.overview import charts, file_sizes
from model_pack.report.sentences import bases, category_choices, flag_choices, section, set_choices
from model_pack.report.summary import cards
from model_pack.report.tables import fact_tables, figures_table

_FOLDER = Path(__file__).parent

# Characters that HTML cannot carry, or (a carriage return) would not carry unchanged.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTROL_PICTURES = 0x2400


def render(evaluation: Evaluation, packs: Sequence[Pack], inspection: Inspection | None) -> str:
    """The whole page."""
    precisions = evaluation.precisions | {pack.name: pack.precision for pack in packs}
    contest = Contest.of(evaluation.systems, precisions)
    evaluation = replace(evaluation, systems=contest.ordered(evaluation.systems))
    judgements = [[judge(sentence, contest) for sentence in one.sentences] for one in evaluation.sets]
    judged = _judged(packs, contest, precisions)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["system"] = wording.system_name
    style, script = ((_FOLDER / name).read_text("utf-8") for name in ("style.css", "script.js"))
    page = environment.get_template("template.html").render(
        style=Markup(style),  # nosec B704
        script=Markup(script),  # nosec B704
        style_hash=_content_hash(style),
        script_hash=_content_hash(script),
        title=_title(precisions.get(contest.subject, contest.subject), judged),
        subtitle=_subtitle(evaluation, judged),
        contest=contest,
        systems=evaluation.systems,
        languages=_language_codes(judged),
        cards=cards(evaluation, packs, contest, judged, judgements),
        remarks=inspection.remarks if inspection else [],
        charts=charts(evaluation, packs, contest),
        file_sizes=file_sizes(packs),
        pack_names=[pack.name for pack in packs],
        figures=figures_table(evaluation),
        tables=fact_tables(evaluation, packs, inspection),
        filters=flag_choices(contest, judgements),
        categories=category_choices(evaluation),
        sets=set_choices(evaluation),
        sections=[
            section(one, evaluation.systems, contest, found)
            for one, found in zip(evaluation.sets, judgements, strict=True)
        ],
        marks_against=next(iter(bases(contest)), None),
    )
    return _UNFIT.sub(_picture, page)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(_CONTROL_PICTURES + code) if code < 0x20 else "␡" if code == 0x7F else "\N{REPLACEMENT CHARACTER}"


def _content_hash(text: str) -> str:
    """What a content security policy names an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _judged(packs: Sequence[Pack], contest: Contest, precisions: Mapping[str, str]) -> Pack | None:
    """The pack of the system that is judged: that of its name, or else the first of its precision."""
    precision = precisions.get(contest.subject, contest.subject)
    by_name = [pack for pack in packs if pack.name == contest.subject]
    by_precision = [pack for pack in packs if pack.precision == precision]
    return next(iter([*by_name, *by_precision, *packs]), None)


def _title(precision: str, judged: Pack | None) -> str:
    return f"{judged.model_id if judged else 'Model pack'}, {wording.system_name(precision)}"


def _subtitle(evaluation: Evaluation, judged: Pack | None) -> list[str]:
    facts = []
    if judged:
        facts.append(judged.languages)
        facts.append(f"licence {judged.licence or 'not stated'}")
    sentences = sum(len(one.sentences) for one in evaluation.sets)
    facts.append(f"{wording.count(sentences)} {wording.plural('sentence', sentences)}")
    facts.append(f"{len(evaluation.sets)} {wording.plural('set', len(evaluation.sets))}")
    facts.append("systems: " + ", ".join(map(wording.system_name, evaluation.systems)))
    return facts


def _language_codes(pack: Pack | None) -> tuple[str, str]:
    """Source and target, for the browser's choice of glyphs; empty: not known, or not the same everywhere."""
    if pack is None:
        return "", ""
    targets = {str(target.get("code", "")) for target in pack.target_languages}
    return str(pack.source_language.get("code", "")), targets.pop() if len(targets) == 1 else ""
