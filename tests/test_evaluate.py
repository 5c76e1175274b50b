"""Evaluating packs: the figures, the file they are written to, and what is refused with what words."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from function.engine.model import Model
from function.engine.pack import MANIFEST
from model_pack.baseline import Run, read_baseline
from model_pack.dataset import EVALSET, Segment, read_tsv
from model_pack.errors import ModelPackError
from model_pack.evaluate import Evaluation, evaluate_packs, markdown
from model_pack.metrics import evaluate_set, has_loop
from tests.paths import STARTER, sha256

LONG = "A text without an end " * 200


@pytest.fixture(scope="module")
def segments() -> list[Segment]:
    return read_tsv(STARTER / "eval" / "test_tatoeba.tsv")[:40]


@pytest.fixture(scope="module")
def fp32_outputs(fp32_model: Model, segments: list[Segment]) -> list[str]:
    return [draft.text for draft in fp32_model.decode([segment.source for segment in segments])]


def quiet(_: str) -> None:
    pass


def evaluate(packs: dict[str, Path], folder: Path, *segments: Segment, baseline: Path | None = None) -> Evaluation:
    return evaluate_packs(packs, {"a set": segments}, baseline, folder / "evaluation.json", quiet)


def segment(source: str, reference: str | None = None, id_: str = "a") -> Segment:
    return Segment(id_, source, reference, None)


def measure(outputs: Sequence[str | None], references: Sequence[str | None], language: str = "zh-Hans") -> Any:
    segments = [segment("Some text.", reference) for reference in references]
    return evaluate_set("a set", segments, {"system": Run(outputs, None)}, language, None).systems["system"]


def write_baseline(path: Path, *entries: dict[str, Any], provenance: Any = None) -> Path:
    lines = [{"provenance": provenance or {"tool": "another"}}, *entries]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return path


def spoil(pack: Path, folder: Path, **changes: Any) -> Path:
    """A copy of the pack with changes in its manifest."""
    shutil.copytree(pack, folder)
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    (folder / MANIFEST).write_text(json.dumps(manifest | changes), "utf-8")
    return folder


def test_two_packs_and_a_baseline(
    fp32_pack: Path, int8_pack: Path, segments: list[Segment], fp32_outputs: list[str], tmp_path: Path
) -> None:
    baseline = write_baseline(
        tmp_path / "baseline.jsonl",
        *(
            # Every fourth output differs, and beam search gives what references say.
            {"id": s.id, "source": s.source, "greedy": text if index % 4 else "另一句。", "beam": s.reference, "ms": 1}
            for index, (s, text) in enumerate(zip(segments, fp32_outputs, strict=True))
        ),
        {"id": "in no set", "source": "More.", "greedy": "更多。"},
    )
    said: list[str] = []
    out = tmp_path / "new" / "evaluation.json"

    packs = {"int8": int8_pack, "fp32": fp32_pack}
    evaluation = evaluate_packs(packs, {"everyday": segments}, baseline, out, said.append)

    references = [s.reference or "" for s in segments]
    everyday = evaluation.sets[0]
    assert list(everyday.systems) == ["baseline", "baseline-beam", "int8", "fp32"]
    fp32, int8 = everyday.systems["fp32"], everyday.systems["int8"]
    assert fp32.bleu == round(sacrebleu.corpus_bleu(fp32_outputs, [references], tokenize="zh").score, 2)
    assert fp32.chrf == round(sacrebleu.corpus_chrf(fp32_outputs, [references]).score, 2)
    assert fp32.length_ratio == len("".join(fp32_outputs)) / len("".join(references))
    assert (fp32.identical_to_fp32, fp32.identical_to_baseline) == (None, 0.75)
    assert int8.bleu is not None
    assert abs(int8.bleu - fp32.bleu) < 8
    assert int8.identical_to_fp32 is not None
    assert 0.7 < int8.identical_to_fp32 <= 1
    assert (fp32.empty, fp32.refused, int8.empty, int8.refused) == (0, 0, 0, 0)
    assert fp32.milliseconds is not None
    assert fp32.milliseconds > 0
    greedy, beam = everyday.systems["baseline"], everyday.systems["baseline-beam"]
    assert (greedy.identical_to_fp32, greedy.identical_to_baseline, greedy.milliseconds) == (0.75, None, None)
    assert (beam.bleu, beam.length_ratio) == (100, 1)

    first = everyday.sentences[1]
    assert (first.id, first.source, first.reference) == (segments[1].id, segments[1].source, segments[1].reference)
    assert first.outputs["fp32"] == first.outputs["baseline"] == fp32_outputs[1]
    assert json.loads(out.read_text("utf-8")) == asdict(evaluation)
    assert [path.name for path in out.parent.iterdir()] == ["evaluation.json"]
    assert said[-1] == f"Wrote {out}"


def test_the_provenance_says_what_was_compared(int8_pack: Path, tmp_path: Path) -> None:
    baseline = write_baseline(tmp_path / "b", {"id": "a", "source": "Yes.", "greedy": "是。"}, provenance={"beams": 4})

    provenance = evaluate({"mine": int8_pack}, tmp_path, segment("Yes."), baseline=baseline).provenance

    assert set(provenance["versions"]) == {
        "marian-lambda",
        "python",
        "numpy",
        "onnxruntime",
        "sacrebleu",
    }
    assert "tok:zh" in provenance["bleu"]
    assert provenance["chrf"].startswith("nrefs:1|")
    assert provenance["packs"] == {
        "mine": {"model": "starter", "precision": "int8", "manifest_sha256": sha256(int8_pack / MANIFEST)}
    }
    assert provenance["baseline"] == {"sha256": sha256(baseline), "provenance": {"beams": 4}}


def test_texts_without_references_and_texts_that_are_refused(int8_pack: Path, tmp_path: Path) -> None:
    evaluation = evaluate({"int8": int8_pack}, tmp_path, segment(LONG), segment("Good morning.", id_="b"))

    metrics = evaluation.sets[0].systems["int8"]
    assert (metrics.refused, metrics.empty) == (1, 0)
    assert (metrics.bleu, metrics.chrf, metrics.length_ratio) == (None, None, None)
    assert (metrics.identical_to_fp32, metrics.identical_to_baseline, metrics.length_ratio_to_baseline) == (
        None,
        None,
        None,
    )
    outputs = [sentence.outputs["int8"] for sentence in evaluation.sets[0].sentences]
    assert outputs[0] is None
    assert outputs[1]


def test_sets_of_several_calls_keep_their_order(
    fp32_pack: Path, segments: list[Segment], fp32_outputs: list[str], tmp_path: Path
) -> None:
    many = [Segment(str(index), segments[index % 40].source, None, None) for index in range(300)]

    sentences = evaluate({"fp32": fp32_pack}, tmp_path, *many).sets[0].sentences

    assert [s.outputs["fp32"] for s in sentences] == [fp32_outputs[index % 40] for index in range(300)]


def test_only_segments_with_references_are_scored() -> None:
    metrics = measure(["今天天气很好。", "别的", None], ["今天天气很好。", None, "十个字的参考译文在此"])

    expected = sacrebleu.corpus_bleu(
        ["今天天气很好。", ""], [["今天天气很好。", "十个字的参考译文在此"]], tokenize="zh"
    )
    assert metrics.bleu == round(expected.score, 2)
    assert metrics.length_ratio == 7 / 17


def test_bleu_splits_words_as_the_target_language_does() -> None:
    assert measure(["今天天气好"], ["今天天气很好"]).bleu > 30
    assert measure(["今天天气好"], ["今天天气很好"], "de").bleu < 1
    texts = ["Das ist ein guter Tag!"], ["Das ist ein guter Tag."]
    assert measure(*texts, "de").bleu == round(sacrebleu.corpus_bleu(texts[0], [texts[1]]).score, 2)


def test_empty_outputs_count_where_there_was_something_to_say() -> None:
    segments = [segment("Yes."), segment("No."), segment("..."), segment("Perhaps.")]
    runs = {"system": Run(["", " \n", "", "也许。"], 1.0)}

    assert evaluate_set("a set", segments, runs, "zh", None).systems["system"].empty == 2


def test_outputs_that_repeat_themselves_are_counted() -> None:
    assert measure(["好好好好好", "好", None], [None] * 3).loops == 1


@pytest.mark.parametrize(
    "text",
    [
        "aaaaa",
        "法法案案案案案案。",
        "关于关于关于关于关于",
        "他说，他说，他说，他说，他说，",
        "the end the end the end the end the end ",
        "一二三四五六七八九十甲乙" * 5,
        "......x......x......x......x......x",
        "... " * 20 + "ha ha ha ha ha ",
        "1.1.1.1.1.",
        "0" * 13,
        "第1第1第1第1第1",
        "多行\n" * 5,
    ],
)
def test_loops(text: str) -> None:
    assert has_loop(text)
    assert has_loop(f"前面{text}后面")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "aaaa",
        "好好好好",
        "关于关于关于关于关",
        "一二三四五六七八九十甲乙丙" * 5,
        "......",
        "————————————",
        "- - - - - - - -",
        "= * = * = * = * = *",
        "……！！！！！！！！",
        "     \n\n\n\n\n\n",
        "100000",
        "1000000000000",
        "$1,000,000,000,000",
        "2222222",
        "abcabcabcabdabc",
    ],
)
def test_no_loops(text: str) -> None:
    assert not has_loop(text)


def test_no_sentence_of_a_person_is_a_loop() -> None:
    for path in [EVALSET, *(STARTER / "eval").glob("*.tsv")]:
        for read in read_tsv(path):
            assert not has_loop(read.source)
            assert not has_loop(read.reference or "")


def test_the_table_has_a_row_for_each_system_and_no_empty_column() -> None:
    segments = [segment("Good.", "好。"), segment("Bad.", "坏。")]
    runs = {"fp32": Run(["好。", "坏。"], 12.34), "int8": Run(["好。", None], 5.0)}
    sets = [
        evaluate_set("with references", segments, runs, "zh", "fp32"),
        evaluate_set("without", [segment("Good.")], {"int8": Run(["好"], 5.0)}, "zh", None),
    ]

    table = markdown(Evaluation({}, sets)).splitlines()

    columns = "set | sentences | system | BLEU | chrF | same as FP32 | length / reference | loops | empty | refused"
    assert table[0] == f"| {columns} | ms a sentence |"
    assert table[1] == "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    assert table[2].startswith("| with references | 2 | fp32 | 0.00 | 100.00 |  | 1.000 | 0 | 0 | 0 | 12.3 |")
    assert table[3].endswith(" | 50.0% | 0.500 | 0 | 0 | 1 | 5.0 |")
    assert table[4] == "| without | 1 | int8 |  |  |  |  | 0 | 0 | 0 | 5.0 |"
    assert len(table) == 5


def test_the_same_sentence_ids_in_two_sets(int8_pack: Path, tmp_path: Path) -> None:
    baseline = write_baseline(
        tmp_path / "b",
        {"id": "1", "source": "Yes.", "greedy": "是。", "beam": None},
        {"id": "1", "source": "No.", "greedy": "不。", "beam": "不是。"},
    )
    sets = {"first": [segment("Yes.", id_="1")], "second": [segment("No.", id_="1")]}

    first, second = evaluate_packs({"int8": int8_pack}, sets, baseline, tmp_path / "e.json", quiet).sets

    assert first.sentences[0].outputs["baseline"] == "是。"
    assert second.sentences[0].outputs["baseline"] == "不。"
    assert "baseline-beam" not in first.systems
    assert second.sentences[0].outputs["baseline-beam"] == "不是。"


def test_a_baseline_of_other_sentences_is_refused(int8_pack: Path, tmp_path: Path) -> None:
    baseline = write_baseline(tmp_path / "b.jsonl", {"id": "a", "source": "Yes.", "greedy": "是。"})

    with pytest.raises(ModelPackError, match=r"b\.jsonl has no sentence 'z', which the set a set has: make the"):
        evaluate({"int8": int8_pack}, tmp_path, segment("Yes."), segment("No.", id_="z"), baseline=baseline)
    with pytest.raises(ModelPackError, match=r"b\.jsonl has another source for the sentence 'a' than the set a set"):
        evaluate({"int8": int8_pack}, tmp_path, segment("Yes!"), baseline=baseline)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "b.jsonl, line 1, is not JSON"),
        (b"\xff\n", "b.jsonl is not UTF-8 (byte 0)"),
        (b'{"id": "a"}\n', "b.jsonl is not a baseline: its first line must be"),
        (b"[1]\n", "b.jsonl is not a baseline"),
        (b'{"provenance": {}}\n{"id": "a"\n', "b.jsonl, line 2, is not JSON"),
        (b'{"provenance": {}}\n7\n', "b.jsonl, line 2, must have the strings id, source and greedy"),
        (
            b'{"provenance": {}}\n{"id": 1, "source": "a", "greedy": "b"}\n',
            "b.jsonl, line 2, must have the strings id, source and greedy",
        ),
        (
            b'{"provenance": {}}\n{"id": "1", "source": "a", "greedy": "b", "beam": 4}\n',
            "b.jsonl, line 2, must have a string or null as beam",
        ),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "b.jsonl"
    path.write_bytes(content)

    with pytest.raises(ModelPackError) as refused:
        read_baseline(path)

    assert words in str(refused.value)


def test_a_baseline_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelPackError, match=r"there is no file .*b\.jsonl"):
        read_baseline(tmp_path / "b.jsonl")
    with pytest.raises(ModelPackError, match="cannot be read: Is a directory"):
        read_baseline(tmp_path)


def test_packs_that_cannot_be_compared_are_refused(int8_pack: Path, fp32_pack: Path, tmp_path: Path) -> None:
    language: dict[str, Any] = {"code": "de", "name": "German", "aliases": [], "token": None}
    german = spoil(int8_pack, tmp_path / "german", languages={"source": language, "targets": [language]})

    with pytest.raises(ModelPackError, match="there is no pack to evaluate; name one or more with --pack NAME=FOLDER"):
        evaluate({}, tmp_path, segment("Yes."))
    with pytest.raises(ModelPackError, match="a pack cannot be called 'baseline'"):
        evaluate({"baseline": int8_pack}, tmp_path, segment("Yes."))
    with pytest.raises(ModelPackError, match="is not a model pack"):
        evaluate({"int8": tmp_path / "nothing"}, tmp_path, segment("Yes."))
    with pytest.raises(ModelPackError, match=r"different languages \(fp32: en -> zh-Hans, german: de -> de\)"):
        evaluate({"fp32": fp32_pack, "german": german}, tmp_path, segment("Yes."))


def test_a_place_that_cannot_be_written_is_refused_before_the_work(int8_pack: Path, tmp_path: Path) -> None:
    (tmp_path / "evaluation.json").mkdir()
    (tmp_path / "file").write_text("")
    said: list[str] = []

    with pytest.raises(ModelPackError, match=r"evaluation\.json is a folder; --out takes the name of a JSON file"):
        evaluate({"int8": int8_pack}, tmp_path, segment("Yes."))
    with pytest.raises(ModelPackError, match=r"cannot be written: .*file is not a folder"):
        evaluate_packs({"int8": int8_pack}, {}, None, tmp_path / "file" / "e.json", said.append)
    assert not said


def test_a_failed_evaluation_leaves_the_old_file(int8_pack: Path, tmp_path: Path) -> None:
    files = json.loads((int8_pack / MANIFEST).read_text("utf-8"))["files"]
    broken = spoil(int8_pack, tmp_path / "broken", files={name: files[name] for name in files if "encoder" not in name})
    (broken / "encoder.onnx").write_bytes(b"junk")
    out = tmp_path / "out" / "evaluation.json"
    out.parent.mkdir()
    out.write_text("old")

    with pytest.raises(ModelPackError, match=r"encoder\.onnx"):
        evaluate({"int8": int8_pack, "broken": broken}, out.parent, segment("Yes."))

    assert out.read_text() == "old"
    assert list(out.parent.iterdir()) == [out]


def test_a_new_evaluation_replaces_the_old_file(int8_pack: Path, tmp_path: Path) -> None:
    (tmp_path / "evaluation.json").write_text("old")

    evaluation = evaluate({"int8": int8_pack}, tmp_path, segment("Yes."))

    assert json.loads((tmp_path / "evaluation.json").read_text("utf-8")) == asdict(evaluation)


def test_the_bar_says_what_is_translated(int8_pack: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    evaluate({"int8": int8_pack}, tmp_path, segment("Yes."))

    progress = capfd.readouterr().err
    assert "int8, a set: 100%" in progress
    assert "1/1" in progress
