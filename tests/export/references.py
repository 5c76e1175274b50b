"""Recompute tests/references with transformers: what greedy search and the tokenizer must give.

Run by `make references`, after the starter checkpoint or the tricky texts have changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import MarianMTModel, MarianTokenizer

from tests.paths import CORPORA, OPUS_FILES, REFERENCES, SHARED, STARTER, reference_sentences, sha256

# One line a kind: specials and language codes, spaces of all sorts, U+2581, control pieces, combining marks,
# characters that source.spm does not know, what NFKC changes, emoji, and repetition (where scores tie).
TRICKY = [
    *("", " ", "  ", "\t", "\n", "a\tb", "a\r\nb", " a  b ", "\u3000", "\u00a0x", "\u200b", "\ufeffx", "a\u2028b"),
    *("</s>", "a</s>b", "</s> a", "<pad>", "<unk>", "a <unk> b", "<s>", "x <s> y", "</s></s>", "</ s>"),
    *(">>cmn_Hans<<", ">>cmn_Hans<< hello", ">>cmn_Hans<<hello", ">>zz<< hi", " >>zz<< hi", "hi >>zz<<", ">>a"),
    *(">><< x", ">>a\nb<< x", "</s>>>cmn_Hans<<x", "<pad> >>zz<<x"),
    *("\u2581", "\u2581a", "a\u2581b", " \u2581 a", "a \u2581", "\u2581\u2581"),
    *("\u0301", "e\u0301", "cafe\u0301 re\u0301sume\u0301", "n\u0303o", "\u1e9b\u0323", "\u0300\u0301"),
    *("\u0915\u094d\u0937", "\u05d0\u05b0", "\u0627\u064b", "\u1100\u1161\u11a8", "\ud55c\uad6d", "\u0344", "\u0958"),
    *("中国 China 中 国", "翻译", "。，！", "Ｆｕｌｌ ｗｉｄｔｈ １２３", "ｶﾞ", "ﬁne ﬂow", "①②", "½ cup", "㎏ ™ …"),
    *("“quoted” ‘so’ —",),
    *("I couldn’t", "I couldn't", "naïve Å İ ß ſ", "𝔘𝔫𝔦", "☃☃☃ a ☃", "\ufffd", "\ue000", "\U0010ffff"),
    *("😀 👍🏽 🇨🇳 👨\u200d👩\u200d👧",),
    *("\u0000", "a\u0001b", "\u007f", "\u0085", "a\u00adb", "\u2060"),
    *("Version 2.200.112 of 12 files", "https://example.org/AbC1?x=2&y=3", "@user #tag", "os.rename(a, b)"),
    *(unit * count for count in (2, 3, 4, 7, 17, 40) for unit in ("a", "x", "!", ".", "-", "=", "0", "ha", "ab")),
    *(unit * count for count in (2, 3, 4, 7, 17, 40) for unit in ("lol", "no ", "哈")),
    *("Wooooow that is coooool", "so......... what", "=" * 80, "x" * 300, "ab" * 120, "thank you " * 20),
]  # fmt: skip


def greedy_ids(model: Any, source_ids: list[int]) -> list[int]:
    """Target ids by transformers' greedy search, decoder start left out, eos included."""
    output = model.generate(torch.tensor([source_ids]), num_beams=1, do_sample=False)
    ids: list[int] = output[0].tolist()[1:]
    return ids


def digest(ids_of_lines: Iterable[list[int]]) -> str:
    """One hash for the ids of many lines."""
    return hashlib.sha256("\n".join(json.dumps(ids) for ids in ids_of_lines).encode()).hexdigest()


def main() -> None:
    versions = {
        "command": "make references",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "checkpoint": {"model.safetensors": sha256(STARTER / "model.safetensors")},
    }
    tokenizer = MarianTokenizer.from_pretrained(STARTER)
    model = MarianMTModel.from_pretrained(STARTER).eval()
    sentences = []
    for id_, text in reference_sentences().items():
        source_ids = tokenizer(text).input_ids
        sentences.append({"id": id_, "source_ids": source_ids, "target_ids": greedy_ids(model, source_ids)})
    _write(REFERENCES / "greedy.json", {"provenance": versions, "sentences": sentences})

    tokenizers = {"starter": STARTER, "opus-mt-en-mg": OPUS_FILES / "opus-mt-en-mg"}
    for name, folder in tokenizers.items():
        tokenizer = MarianTokenizer.from_pretrained(folder)
        corpora = {corpus: (SHARED / corpus).read_text("utf-8").split("\n") for corpus in CORPORA}
        reference = {
            "provenance": {**versions, "checkpoint": {"vocab.json": sha256(folder / "vocab.json")}},
            "tricky": [{"text": text, "ids": tokenizer(text).input_ids} for text in TRICKY],
            "corpora": {
                corpus: {"lines": len(lines), "ids_sha256": digest(tokenizer(line).input_ids for line in lines)}
                for corpus, lines in corpora.items()
            },
        }
        _write(REFERENCES / f"tokenizer-{name}.json", reference)


def _write(path: Path, reference: dict[str, Any]) -> None:
    """JSON with a line for each entry of a list, so that a change shows as the entries it changes."""
    parts = []
    for key, value in reference.items():
        if isinstance(value, list):
            parts.append(f"{json.dumps(key)}: [\n" + ",\n".join(map(json.dumps, value)) + "\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value, indent=1)}")
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")
    print(f"Wrote {path}")


if __name__ == "__main__":
    main()
