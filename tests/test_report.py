"""The report: what stands on the page, that nothing in it can break it, and that its filters work in a browser."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from model_pack.errors import ModelPackError
from model_pack.report import write_report
from model_pack.report.charts import Bar, Group, grouped_bars
from model_pack.report.comparison import Contest, judge, marked
from model_pack.report.inputs import Sentence

VOID = {"meta", "link", "input", "br", "col", "img", "hr"}
SCRIPT = "<script>alert(1)</script>"
HOSTILE = [
    SCRIPT,
    "</td></tr></table><h1>out</h1>",
    "\"><img src=x onerror=alert(1)> ' onclick='alert(1)",
    "before\u2028after\u2029end",
    "שלום \u202eעולם (abc) مرحبا",
    "]]> --> <!-- {{ 7 * 7 }} {% raw %} &amp; &lt;b&gt;",
    "长" * 5000,
    "tab\there\nand a line",
]


@dataclass
class Node:
    """An element of a parsed page."""

    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def all(self, tag: str, **attributes: str) -> list[Node]:
        return [
            node
            for node in self.walk()
            if node.tag == tag
            and all(node.attributes.get(name.strip("_").replace("_", "-")) == v for name, v in attributes.items())
        ]

    def one(self, tag: str, **attributes: str) -> Node:
        (node,) = self.all(tag, **attributes)
        return node


class PageParser(HTMLParser):
    """Builds nodes; an end tag must close the element that was opened last."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Node("root", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> in <{self._open[-1].tag}> at {self.getpos()}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def finish(self) -> Node:
        self.close()
        assert self._open == [self.root], f"<{self._open[-1].tag}> is not closed"
        return self.root


def parse(page: str) -> Node:
    parser = PageParser()
    parser.feed(page)
    return parser.finish()


def evaluation(*sentences: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """An evaluation of one set, `docs`, whose sentences are filled up to whole ones."""
    whole = [
        {"id": f"s{index}", "category": None, "source": "Hello.", "reference": None, "outputs": {}} | sentence
        for index, sentence in enumerate(sentences)
    ]
    one = {"name": "docs", "segments": len(whole), "systems": {}, "sentences": whole} | changes
    return {"provenance": {}, "sets": [one]}


def three(baseline: str, fp32: str, int8: str, **more: Any) -> dict[str, Any]:
    return {"outputs": {"baseline": baseline, "fp32": fp32, "int8": int8}, **more}


def write(folder: Path, content: object, packs: dict[str, Path] | None = None, inspection: object = None) -> str:
    """The text of the report on an evaluation of this content."""
    (folder / "evaluation.json").write_text(json.dumps(content), "utf-8")
    if inspection is not None:
        (folder / "inspection.json").write_text(json.dumps(inspection), "utf-8")
    write_report(
        folder / "evaluation.json",
        packs or {},
        None if inspection is None else folder / "inspection.json",
        folder / "report.html",
    )
    return (folder / "report.html").read_text("utf-8")


def rows(page: Node) -> dict[str, Node]:
    """The sentences of the page by id."""
    found = [row for table in page.all("table", class_="sentences") for row in table.one("tbody").all("tr")]
    return {row.one("span", class_="name").text: row for row in found}


def cells(row: Node) -> dict[str, Node]:
    return {cell.attributes["data-label"]: cell for cell in row.all("td")}


def flags(row: Node) -> set[str]:
    return set(row.attributes["data-flags"].split())


# --- the whole page ---

FIGURES = {
    "baseline": {"bleu": 30.5, "chrf": 26.25, "loops": 0, "empty": 0, "refused": 0, "milliseconds": None},
    "fp32": {"bleu": 30.43, "chrf": 26.2, "loops": 1, "empty": 0, "refused": 0, "milliseconds": 6.1},
    "int8": {
        "bleu": 30.51,
        "chrf": 26.26,
        "identical_to_fp32": 0.897,
        "length_ratio": 0.93,
        "loops": 2,
        "empty": 1,
        "refused": 0,
        "milliseconds": 5.12,
        "peak_megabytes": 93.25,
    },
}


@pytest.fixture(scope="module")
def packs(int8_pack: Path, fp32_pack: Path) -> dict[str, Path]:
    return {"starter-fp32": fp32_pack, "starter-int8": int8_pack}


def test_a_page_tells_what_there_is_to_know(tmp_path: Path, packs: dict[str, Path]) -> None:
    content = evaluation(three("早安", "早安", "早上好", reference="早上好", category="greeting"), systems=FIGURES)
    content["provenance"] = {"threads": 2, "tools": {"sacrebleu": "2.6.0"}}

    page = parse(
        write(tmp_path, content, packs, {"numbers": {"d_model": 256}, "remarks": ["Beam search was asked for."]})
    )

    assert page.one("head").one("title").text == page.one("h1").text == "starter, INT8"
    text = re.sub(r"\s+", " ", page.text)
    for words in ("English (en) to Chinese (Simplified) (zh-Hans)", "licence apache-2.0", "Beam search was asked for."):
        assert words in text
    facts = {
        row.one("th").text: [cell.text for cell in row.all("td")]
        for row in page.all("tr")
        if row.all("th", scope="row")
    }
    assert facts["INT8 − FP32"] == ["+0.06", "+0.08"]
    assert facts["docs, INT8"] == ["26.26", "30.51", "89.7%", "0.930", "2", "1", "0", "5.12", "93.25"]
    assert facts["docs, baseline"] == ["26.25", "30.50", "–", "–", "0", "0", "0", "–", "–"]
    assert "peak megabytes" in text
    assert facts["INT8"] == ["2", "1", "0"]
    assert facts["d_model"] == ["256"]
    assert facts["network: decoder_layers"] == ["2", "2"]
    assert facts["quantization: precision"] == ["fp32", "int8"]
    assert facts["tools.sacrebleu"] == ["2.6.0"]
    assert facts["weights.bin"] == ["35.3 MB", "7.7 MB"]
    assert facts["output_head.bin"] == ["–", "1.8 MB"]


def test_charts_say_their_values(tmp_path: Path, packs: dict[str, Path]) -> None:
    sentences = [
        three("早安", "早安", "早上好", reference="早上好", category="greeting"),
        three("是", "是", "是", reference="对"),
    ]

    page = parse(write(tmp_path, evaluation(*sentences, systems=FIGURES), packs))

    said = {
        figure.one("strong").text: figure.one("svg", role="img").attributes["aria-label"]
        for figure in page.all("figure")
    }
    assert said["Size of the packs"] == "starter-fp32 (FP32): 35.8 MB; starter-int8 (INT8): 10.1 MB"
    assert said["Quality: chrF"] == "docs: baseline 26.25, FP32 26.20, INT8 26.26"
    assert said["Time"] == "docs: FP32 6.10, INT8 5.12"
    assert said["INT8 same as FP32"] == "greeting: 0 of 1, 0.0%; no category: 1 of 1, 100.0%"
    assert "INT8 same as baseline" in said
    ten_and_ten = [0] * 21
    ten_and_ten[10] = 2  # both are as long as their references
    assert f"INT8: {', '.join(map(str, ten_and_ten))}" in said["Length: output / reference"]


def test_bars_begin_at_zero_and_are_in_proportion() -> None:
    chart = parse(str(grouped_bars([Group("g", [Bar("a", 20.0, "20", "c0"), Bar("b", 5.0, "5", "c1")])])))

    first, second = (rect.attributes for rect in chart.all("rect"))
    assert first["x"] == second["x"] == chart.all("line", class_="axis")[0].attributes["x1"]
    assert float(first["width"]) == pytest.approx(4 * float(second["width"]), abs=0.2)


def test_hostile_text_is_text(tmp_path: Path, packs: dict[str, Path]) -> None:
    sentences = [
        three(text, f"{text}x", f"x{text}", id=f"{index} {text}", source=text, reference=text, category=text)
        for index, text in enumerate(HOSTILE)
    ]
    content = evaluation(*sentences, name=SCRIPT, systems={SCRIPT: {SCRIPT: 1.5}})
    content["provenance"] = {SCRIPT: [SCRIPT, {SCRIPT: SCRIPT}]}
    content["sets"][0]["sentences"][0]["outputs"][HOSTILE[2]] = HOSTILE[2]
    fake = tmp_path / "pack"
    fake.mkdir()
    (fake / "manifest.json").write_text(
        json.dumps(
            {
                "model": {"id": SCRIPT, "licence": SCRIPT},
                "languages": {
                    "source": {"name": SCRIPT, "code": SCRIPT},
                    "targets": [{"code": '"><b>', "name": SCRIPT}],
                },
                "quantization": {"precision": "int8", SCRIPT: SCRIPT},
                "files": {SCRIPT: {"size": 5}},
            }
        )
    )

    text = write(tmp_path, content, {SCRIPT: fake, **packs}, {"numbers": {SCRIPT: SCRIPT}, "remarks": HOSTILE})

    assert SCRIPT not in text
    assert html.escape(SCRIPT) in text
    page = parse(text)
    assert page.one("h1").text == f"{SCRIPT}, INT8"
    assert len(page.all("script")) == len(page.all("style")) == 1
    assert not page.all("img")
    assert not page.all("b")
    assert not [name for node in page.walk() for name in node.attributes if name.startswith("on")]
    found = rows(page)
    assert list(found) == [sentence["id"] for sentence in sentences]
    for sentence, row in zip(sentences, found.values(), strict=True):
        assert row.attributes["data-category"] == sentence["category"]
        assert cells(row)["source"].text == cells(row)["reference"].text == sentence["source"]
        assert all(cells(row)[name].text == sentence["outputs"][name.lower()] for name in ("baseline", "FP32", "INT8"))
    assert {button.attributes["data-value"] for button in page.all("button", data_kind="category")} == set(HOSTILE)


def test_characters_that_html_cannot_carry_are_pictured(tmp_path: Path) -> None:
    page = parse(write(tmp_path, evaluation({"source": "a\x00b\rc\ud800d\x7fe\x85f", "outputs": {"int8": "好"}})))

    assert cells(rows(page)["s0"])["source"].text == "a␀b␍c\ufffdd␡e\ufffdf"


def test_nothing_is_loaded(tmp_path: Path, packs: dict[str, Path]) -> None:
    text = write(tmp_path, evaluation(three("a", "b", "c", source="see https://example.org/ and url(x)")), packs)

    page = parse(text)
    loaded = [node for node in page.walk() if {"src", "srcset", "action", "data", "poster"} & node.attributes.keys()]
    assert not loaded
    links = [node.attributes["href"] for node in page.walk() if "href" in node.attributes]
    assert {link for link in links if not link.startswith("#")} == {"data:,"}
    style, script = page.one("style").text, page.one("script").text
    assert not re.search(r"url\(|@import|https?:", style)
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|https?:", script)
    (policy,) = [m.attributes["content"] for m in page.all("meta") if "Security" in m.attributes.get("http-equiv", "")]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_every_sentence_of_two_thousand_is_there_within_seconds(tmp_path: Path) -> None:
    sentences = [
        three(
            f"第{n}句的译文在这里。",
            f"第{n}句的译文在这里！",
            f"这是第{n}句的译文，在那里。",
            reference=f"第{n}句译文。",
        )
        for n in range(2000)
    ]
    started = time.monotonic()

    page = parse(write(tmp_path, evaluation(*sentences)))

    assert time.monotonic() - started < 15
    assert list(rows(page)) == [f"s{n}" for n in range(2000)]


# --- flags ---

LONG = "今天天气很好"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (three("好", "好", "好", reference="好"), set()),
        (three("好的", "好", "好", reference="好"), {"differs"}),  # not from FP32, but from the baseline
        (three("好", "好", "坏", reference="好"), {"differs", "worse"}),
        (three("好", "坏", "好", reference="好"), {"differs"}),  # better
        (three("好", "坏", "坏的", reference="好"), {"differs"}),  # as bad
        (three(LONG, LONG, "今天下雨"), {"differs", "worse"}),  # without a reference the baseline is the measure
        (three(LONG, "今天下雨", LONG), {"differs"}),
        (three(LONG, LONG, LONG + "吗啊", reference=LONG + "吗啊"), {"differs"}),  # two characters more
        (three(LONG, LONG, LONG + "吗啊呀", reference=LONG + "吗啊呀"), {"differs", "longer"}),
        (three(LONG * 3, LONG * 3, LONG * 3 + "吗啊呀", reference="x"), {"differs"}),  # a sixth more
        (three("", "", "好好好"), {"differs", "longer"}),
        ({"outputs": {"int8": "好"}, "reference": "坏"}, set()),
        ({"outputs": {"fp32": "好", "int8": "坏"}}, {"differs"}),  # nothing tells which is the better one
        ({"outputs": {"fp32": "好", "int8": "坏"}, "reference": "好"}, {"differs", "worse"}),
        ({"outputs": {"baseline": "好", "int8": "坏"}, "reference": "好"}, {"differs", "worse"}),
        ({"outputs": {"baseline": "好", "fp32": "坏"}, "reference": "好"}, {"differs", "worse"}),
        ({"outputs": {"fp32": "好", "int8": None}, "reference": "好"}, {"differs", "worse"}),  # refused
    ],
)
def test_flags(tmp_path: Path, sentence: dict[str, Any], expected: set[str]) -> None:
    # The figures tell of a system that gave no output.
    systems = {system: {"loops": 0} for system in sentence["outputs"]}

    page = parse(write(tmp_path, evaluation(sentence, systems=systems)))

    row = rows(page)["s0"]
    assert flags(row) == expected
    counts = {
        button.attributes["data-value"]: button.one("span", class_="count").text
        for button in page.all("button", data_kind="filter")
    }
    assert all(counts[flag] == "1" for flag in expected)
    assert all(count == "0" for flag, count in counts.items() if flag not in expected)
    assert any(tag.text for tag in row.all("span", class_="tag")) == bool(expected)


def test_loss_orders_the_sentences() -> None:
    contest = Contest("int8", "fp32", None)
    sentences = [
        Sentence("a", None, "s", "今天天气很好", {"fp32": "今天天气很好", "int8": t}) for t in ("坏", "今天天气好")
    ]

    far, near = (judge(sentence, contest).loss for sentence in sentences)

    assert far == 100
    assert near is not None
    assert 0 < near < 100


def test_packs_of_other_names_play_their_parts_by_precision(tmp_path: Path) -> None:
    content = evaluation(
        {"outputs": {"small": "坏", "full": "好", "baseline": "好", "baseline-beam": "很好"}, "reference": "好"}
    )
    content["provenance"] = {"packs": {"full": {"precision": "fp32"}, "small": {"precision": "int8"}}}

    page = parse(write(tmp_path, content))

    (row,) = rows(page).values()
    assert list(cells(row)) == ["source", "reference", "baseline", "full", "small", "baseline, beam"]
    assert flags(row) == {"differs", "worse"}
    assert page.one("head").one("title").text == "Model pack, INT8"


# --- differences ---


@pytest.mark.parametrize(
    ("text", "base", "expected"),
    [
        ("今天天气好", "今天天气好", "今天天气好"),
        ("今天天气很好", "今天天气好", "今天天气<ins>很</ins>好"),
        ("今天天气坏", "今天天气好", '今天天气<ins title="instead of: 好">坏</ins>'),
        ("今天好", "今天天气好", "今天<del 天气>好"),
        ("", "好", "<del 好>"),
        ("好", "", "<ins>好</ins>"),
        ("a b", "ab", 'a<ins class="blank"> </ins>b'),
        ("a\u200bb", "ab", 'a<ins class="blank">\u200b</ins>b'),
        ("<b>", "<i>", '&lt;<ins title="instead of: i">b</ins>&gt;'),
        ("x", '"', '<ins title="instead of: &#34;">x</ins>'),
        ("aa", "a", "a<ins>a</ins>"),
    ],
)
def test_differences_are_marked_by_character(text: str, base: str, expected: str) -> None:
    found = re.sub(
        r'<del role="img" aria-label="missing here: (.*?)" title="missing here: \1"></del>',
        r"<del \1>",
        str(marked(text, base)),
    )

    assert found == expected


def test_long_texts_are_marked_in_time() -> None:
    started = time.monotonic()

    found = parse(str(marked("x" + "ab" * 5000 + "y", "y" + "ba" * 6000 + "x")))

    assert time.monotonic() - started < 5
    assert found.text == "x" + "ab" * 5000 + "y"


def test_marks_are_against_the_baseline_or_else_fp32(tmp_path: Path) -> None:
    page = parse(
        write(tmp_path, evaluation(three("甲乙", "甲丙", "甲乙"), {"outputs": {"fp32": "甲丙", "int8": "甲丁丙"}}))
    )

    first, second = (cells(row) for row in rows(page).values())
    assert [ins.text for ins in first["FP32"].all("ins")] == ["丙"]
    assert not first["INT8"].all("ins")
    assert first["INT8"].attributes["class"] == "same"
    assert second["baseline"].text == "no output"
    assert [ins.text for ins in second["INT8"].all("ins")] == ["丁"]


# --- what may be missing ---


@pytest.mark.parametrize(
    "systems", [["int8"], ["fp32"], ["baseline"], ["baseline", "int8"], ["fp32", "int8"], ["mine", "yours"]]
)
def test_systems_may_be_missing(tmp_path: Path, packs: dict[str, Path], systems: list[str]) -> None:
    sentences = [
        {"outputs": dict.fromkeys(systems, "好"), "reference": "好的"},
        {"outputs": dict.fromkeys(systems, ""), "reference": "好"},
    ]

    page = parse(write(tmp_path, evaluation(*sentences, systems={systems[0]: {"bleu": None, "chrf": 3}}), packs))

    assert all(len(cells(row)) == 2 + len(systems) for row in rows(page).values())
    assert cells(rows(page)["s1"])[{"int8": "INT8", "fp32": "FP32"}.get(systems[0], systems[0])].text == "empty"


def test_figures_and_sentences_may_be_missing(tmp_path: Path) -> None:
    page = parse(write(tmp_path, {"sets": [{"name": "bare", "systems": {"int8": {"bleu": float("nan"), "x": True}}}]}))

    assert "The evaluation lists no sentences of this set." in page.text
    assert not page.all("figure")


def test_sets_become_a_choice(tmp_path: Path) -> None:
    content = evaluation(three("好", "好", "好"))
    content["sets"].append(evaluation(three("好", "好", "坏"), three("a", "a", "a"), name="other")["sets"][0])

    page = parse(write(tmp_path, content))

    sets = page.all("button", data_kind="set")
    assert [re.sub(r"\s+", " ", button.text).strip() for button in sets] == ["docs 1", "other 2"]


# --- errors ---


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no file"),
        ("{", "is not JSON"),
        ("\udcff", "is not JSON"),
        ("[]", "does not hold a JSON object"),
        ('{"sets": []}', "holds no sets"),
        ('{"sets": "many"}', "holds no sets"),
        ('{"sets": [3]}', "sets[0] is not a JSON object"),
        ('{"sets": [{"systems": 3}]}', "sets[0].systems is not a JSON object"),
        ('{"sets": [{"sentences": 3}]}', "sets[0].sentences is not a list"),
        ('{"sets": [{"sentences": [{"id": "a"}]}]}', "sets[0].sentences[0] has no source"),
        ('{"sets": [{"sentences": [{"source": "a"}]}]}', "neither outputs nor figures"),
    ],
)
def test_an_evaluation_that_is_none(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "evaluation.json"
    if content is not None:
        path.write_bytes(content.encode("utf-8", "surrogateescape"))

    with pytest.raises(ModelPackError, match=re.escape(words)) as error:
        write_report(path, {}, None, tmp_path / "report.html")

    assert str(path) in str(error.value)
    assert "run the evaluation again" in str(error.value)
    assert not (tmp_path / "report.html").exists()


def good(folder: Path) -> Path:
    path = folder / "evaluation.json"
    path.write_text(json.dumps(evaluation(three("a", "b", "c"))), "utf-8")
    return path


def test_a_folder_that_is_no_pack(tmp_path: Path) -> None:
    with pytest.raises(ModelPackError, match=r"is not a model pack, it has no manifest\.json: name a folder that"):
        write_report(good(tmp_path), {"int8": tmp_path}, None, tmp_path / "report.html")


def test_an_inspection_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ModelPackError, match=r"there is no file .*run the inspection again"):
        write_report(good(tmp_path), {}, tmp_path / "inspection.json", tmp_path / "report.html")


def test_a_refused_report_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")

    with pytest.raises(ModelPackError):
        write_report(good(tmp_path), {"int8": tmp_path / "absent"}, None, tmp_path / "report.html")

    assert (tmp_path / "report.html").read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["evaluation.json", "report.html"]


def test_a_report_makes_its_folder_and_leaves_nothing_beside(tmp_path: Path) -> None:
    write_report(good(tmp_path), {}, None, tmp_path / "new" / "report.html")

    assert [file.name for file in (tmp_path / "new").iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ModelPackError, match="is a folder; name the HTML file"):
        write_report(good(tmp_path), {}, None, tmp_path)
    with pytest.raises(ModelPackError, match="cannot be written"):
        write_report(good(tmp_path), {}, None, tmp_path / "evaluation.json" / "report.html")


# --- in a browser ---

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
in_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed")
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",  # so that a page of the tests may press the buttons of the report
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
    "--dump-dom",
)

Browse = Callable[[str], Node]


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    """The page at an address, as it stands when its scripts have run."""

    def page(address: str) -> Node:
        assert BROWSER
        done = subprocess.run(
            [BROWSER, *SWITCHES, f"--user-data-dir={tmp_path / 'profile'}", address],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        assert "Content Security Policy" not in done.stderr
        return parse(done.stdout)

    return page


@pytest.fixture
def address(tmp_path: Path) -> str:
    """Of a page with 250 sentences, of which the first ones stand out; one has a set of its own."""
    content = evaluation(
        three(LONG, LONG, LONG + "坏坏坏", category="long", reference=LONG, source=f"{SCRIPT} Needle"),
        three(LONG, LONG, LONG + "吗啊呀", category="long", reference=LONG + "吗啊呀"),
        three("好", "好", "坏", category="short, or so", reference="好"),
        *(three("好", "好", "好", category="long") for _ in range(246)),
    )
    content["sets"].append(evaluation(three("好", "好", "坏", id="alone"), name="other")["sets"][0])
    write(tmp_path, content)
    return (tmp_path / "report.html").as_uri()


@in_browser
@pytest.mark.parametrize(
    ("choice", "expected", "pressed"),
    [
        ("#filter=worse,longer&category=long", ["s0"], ["worse", "longer", "long"]),
        ("#page=3&filter=unknown", [*(f"s{n}" for n in range(200, 249)), "alone"], []),
    ],
)
def test_the_address_chooses(
    browse: Browse, address: str, choice: str, expected: list[str], pressed: list[str]
) -> None:
    page = browse(address + choice)

    assert "hidden" not in page.one("div", id="filters").attributes
    assert [button.attributes["data-value"] for button in page.all("button", aria_pressed="true")] == pressed
    assert expected == [
        id_
        for id_, row in rows(page).items()
        if "hidden" not in row.attributes and "later" not in row.attributes.get("class", "")
    ]


STEPS = """
<!doctype html><iframe id="frame" src="ADDRESS"></iframe>
<script>
const frame = document.getElementById("frame");
frame.addEventListener("load", async () => {
  const page = frame.contentDocument;
  const steps = [];
  const step = () => steps.push({
    status: page.getElementById("status").textContent,
    counts: Object.fromEntries([...page.querySelectorAll("button[data-kind]")].map(
      (button) => [button.dataset.value, button.querySelector(".count").textContent])),
    hash: frame.contentWindow.location.hash,
    shown: [...page.querySelectorAll(".sentences tbody tr:not([hidden]):not(.later) .name")].map((id) => id.innerText),
  });
  const press = (selector) => { page.querySelector(selector).click(); step(); };
  step();
  press("button[data-value=differs]");
  press("button[data-value=long]");
  const search = page.getElementById("search");
  search.value = "needle";
  search.dispatchEvent(new Event("input"));
  step();
  press("#clear");
  press("button[data-turn='1']");
  for (const hash of ["filter=differs", "category=short%2C+or+so&set=docs&search=HELLO", "filter=worse&order=loss"]) {
    frame.contentWindow.location.hash = hash;
    await new Promise((resolve) => frame.contentWindow.addEventListener("hashchange", resolve, {once: true}));
    step();
  }
  frame.remove();
  document.body.textContent = JSON.stringify(steps);
});
</script>
"""


@in_browser
def test_buttons_choose_and_count(browse: Browse, address: str, tmp_path: Path) -> None:
    (tmp_path / "steps.html").write_text(STEPS.strip().replace("ADDRESS", address), "utf-8")

    steps = json.loads(browse((tmp_path / "steps.html").as_uri()).one("body").text)

    assert [(step["status"], step["hash"]) for step in steps[:6]] == [
        ("1–100 of 250 sentences", ""),
        ("4 sentences", "#filter=differs"),
        ("2 sentences", "#filter=differs&category=long"),
        ("1 sentence", "#filter=differs&category=long&search=needle"),
        ("1–100 of 250 sentences", ""),
        ("101–200 of 250 sentences", "#page=2"),
    ]
    start, differs, long = (step["counts"] for step in steps[:3])
    assert start | {"differs": "4", "worse": "3", "longer": "2", "docs": "249", "other": "1", "": "1"} == start
    assert start | {"short, or so": "1", "long": "248"} == start
    assert differs | {"differs": "4", "worse": "3", "longer": "2", "docs": "3", "other": "1", "long": "2"} == differs
    assert long | {"worse": "1", "longer": "2", "short, or so": "1", "": "1", "other": "0"} == long
    assert [step["shown"] for step in steps[1:4]] == [["s0", "s1", "s2", "alone"], ["s0", "s1"], ["s0"]]
    assert steps[5]["shown"] == [f"s{n}" for n in range(100, 200)]
    assert [step["shown"] for step in steps[6:]] == [["s0", "s1", "s2", "alone"], ["s2"], ["s2", "s0", "alone"]]
