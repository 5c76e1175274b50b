"""What transformers itself makes of an evaluation set: greedy, and with the beams of the checkpoint's own config."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from model_pack.checkpoint import read_checkpoint
from model_pack.dataset import Segment
from model_pack.errors import ModelPackError

BASELINE = "baseline"
BASELINE_BEAM = "baseline-beam"


@dataclass(frozen=True)
class Run:
    """What one system made of a set's segments, in their order.

    Attributes:
        outputs: the translations; None where the system refused the text.
        milliseconds: a sentence, on average; None where it was not measured.
    """

    outputs: Sequence[str | None]
    milliseconds: float | None


def write_baseline(checkpoint_path: Path, segments: Sequence[Segment], out: Path, say: Callable[[str], None]) -> None:
    """Translate segments with MarianMTModel and write a line of JSON for each to file `out`.

    The first line tells what it was made with. A file that was begun with the same is gone on with: what is
    in it is not done again, so an interruption costs one sentence.

    Raises:
        ModelPackError: torch or transformers is missing, or the folder is not a checkpoint.
    """
    try:
        import torch  # noqa: PLC0415 (only the environment of this step has it)
        import transformers  # noqa: PLC0415
    except ImportError as error:
        raise ModelPackError(
            f"the baseline needs torch and transformers ({error}): `make .venv-export/stamp` sets up an "
            "environment that has them."
        ) from error
    checkpoint = read_checkpoint(checkpoint_path)
    provenance = {
        "model": checkpoint.model_id,
        "revision": checkpoint.revision,
        "weights_sha256": _digest(checkpoint_path),
        "num_beams": checkpoint.config.num_beams,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    done = _resume(out, provenance)
    pending = [segment for segment in segments if done.get(segment.id) != segment.source]
    if done:
        say(f"{len(segments) - len(pending)} of {len(segments)} sentences are in {out} already")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"provenance": provenance}) + "\n", "utf-8")

    tokenizer = transformers.MarianTokenizer.from_pretrained(checkpoint_path)
    model = transformers.MarianMTModel.from_pretrained(checkpoint_path, dtype=torch.float32).eval()

    def generate(source_ids: list[int], beams: int) -> list[int]:
        output = model.generate(torch.tensor([source_ids]), num_beams=beams, do_sample=False)
        ids: list[int] = output[0].tolist()[1:]
        return ids

    with out.open("a", encoding="utf-8") as file:
        for segment in tqdm(pending, unit="sentence", desc="baseline"):
            source_ids: list[int] = tokenizer(segment.source).input_ids
            line: dict[str, Any] = {"id": segment.id, "source": segment.source, "source_ids": source_ids}
            greedy_ids = generate(source_ids, 1)
            beam_ids = generate(source_ids, checkpoint.config.num_beams)
            line |= {
                "greedy_ids": greedy_ids,
                "greedy": tokenizer.decode(greedy_ids, skip_special_tokens=True),
                "beam": tokenizer.decode(beam_ids, skip_special_tokens=True),
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()


def _digest(checkpoint_path: Path) -> str:
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (checkpoint_path / name).is_file():
            return hashlib.sha256((checkpoint_path / name).read_bytes()).hexdigest()
    raise ModelPackError(f"{checkpoint_path} has no weights.")


def _resume(out: Path, provenance: dict[str, Any]) -> dict[str, str]:
    """Sources by id of the sentences in a file of this provenance; a last line cut short is taken off."""
    if not out.is_file():
        return {}
    whole = [line for line in out.read_text("utf-8").splitlines(keepends=True) if line.endswith("\n")]
    try:
        first, *rest = map(json.loads, whole)
        if first["provenance"] != provenance:
            return {}
        done = {line["id"]: line["source"] for line in rest}
    except (ValueError, KeyError, TypeError):
        return {}
    out.write_text("".join(whole), "utf-8")
    return done


@dataclass(frozen=True)
class Baseline:
    """The outputs of another implementation, greedy and perhaps with beam search, by id and source."""

    path: Path
    sha256: str
    provenance: dict[str, Any]
    sentences: dict[tuple[str, str], tuple[str, str | None]]

    def runs(self, name: str, segments: Sequence[Segment]) -> dict[str, Run]:
        """The baseline's outputs for the segments of set `name`; those of beam search only if all are there.

        Raises:
            ModelPackError: a segment is not in the baseline, or its source is another one there.
        """
        ids = {id_ for id_, _ in self.sentences}
        for segment in segments:
            if segment.id not in ids:
                raise ModelPackError(
                    f"{self.path} has no sentence {segment.id!r}, which the set {name} has: "
                    "make the baseline from the same data."
                )
            if (segment.id, segment.source) not in self.sentences:
                raise ModelPackError(
                    f"{self.path} has another source for the sentence {segment.id!r} than the set {name}: "
                    "make the baseline from the same data."
                )
        found = [self.sentences[segment.id, segment.source] for segment in segments]
        runs = {BASELINE: Run([greedy for greedy, _ in found], None)}
        if all(beam is not None for _, beam in found):
            runs[BASELINE_BEAM] = Run([beam for _, beam in found], None)
        return runs


def read_baseline(path: Path) -> Baseline:
    """Read a baseline: {"provenance": {...}} on the first line, {"id", "source", "greedy", "beam"} on each other.

    `beam` may be null or absent, and other keys are ignored.

    Raises:
        ModelPackError: the file cannot be read or does not have this form.
    """
    try:
        content = path.read_bytes()
        lines = content.decode("utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError as error:
        raise ModelPackError(f"there is no file {path}.") from error
    except UnicodeDecodeError as error:
        raise ModelPackError(f"{path} is not UTF-8 (byte {error.start}): it is not a baseline.") from error
    except OSError as error:
        raise ModelPackError(f"{path} cannot be read: {error.strerror}.") from error
    provenance: dict[str, Any] = {}
    sentences: dict[tuple[str, str], tuple[str, str | None]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ModelPackError(f"{path}, line {number}, is not JSON: {error}.") from error
        entry = entry if isinstance(entry, dict) else {}
        if number == 1:
            if not isinstance(entry.get("provenance"), dict):
                raise ModelPackError(f'{path} is not a baseline: its first line must be {{"provenance": {{...}}}}.')
            provenance = entry["provenance"]
            continue
        id_, source, greedy, beam = (entry.get(key) for key in ("id", "source", "greedy", "beam"))
        if not (isinstance(id_, str) and isinstance(source, str) and isinstance(greedy, str)):
            raise ModelPackError(f"{path}, line {number}, must have the strings id, source and greedy.")
        if not isinstance(beam, str | None):
            raise ModelPackError(f"{path}, line {number}, must have a string or null as beam.")
        sentences[id_, source] = (greedy, beam)
    return Baseline(path, hashlib.sha256(content).hexdigest(), provenance, sentences)
