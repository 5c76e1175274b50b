"""Texts in, translations out: what ties the stages before decoding, the model and the stages after it together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from function.engine.drafting import Drafting
from function.engine.model import Model
from function.engine.pack import Language, ModelPack
from function.text.document import Document, open_document
from function.text.draft import Draft, joined
from function.text.guard import Problem, Quality
from function.text.ladder import translate_protected
from function.text.long_sentences import split_long
from function.text.script import Script, is_in_script
from function.text.typography import Style, typeset

_LONGEST_SENTENCE = 1000  # characters: what is longer is cut before the other stages see it, for their time's sake


@dataclass(frozen=True)
class Options:
    """How a text is treated before and after decoding.

    Attributes:
        format: "html": tags stay as they are, and what stands between them is translated.
        segmentation: "sentences": lines are cut into sentences; "unwrap": the same, after lines that were broken at
            a margin are joined; "none": the whole text is given to the model as one sentence.
        typography: whether translations are set by the rules of Chinese typography.
        spacing: what typography does to spaces between Chinese characters and Latin letters or digits.
    """

    format: Literal["text", "html"] = "text"
    segmentation: Literal["sentences", "unwrap", "none"] = "sentences"
    typography: bool = True
    spacing: Literal["keep", "none", "space"] = "keep"


@dataclass(frozen=True)
class Trace:
    """One segment of a text and what each stage made of it."""

    segment: str
    steps: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Translation:
    """One text, translated.

    Attributes:
        score: mean natural-log probability of the target tokens, eos included; None for a text that came back as it
            was because there is nothing in it to translate.
        segments: how many were translated.
        quality: the least of its segments'.
        problem: why it is not "ok".
        trace: of each segment that was translated.
    """

    text: str
    score: float | None
    source_tokens: int
    target_tokens: int
    segments: int = 0
    quality: Quality = Quality.OK
    problem: Problem | None = None
    trace: tuple[Trace, ...] = ()


class Unfinished(Exception):
    """Time was up before this text was translated; it may well be another time."""


class Translator:
    """Translates with one pack; what it needs is loaded when first needed, then kept.

    Args:
        pack: an opened pack.
        threads: how many processors may be used.
    """

    def __init__(self, pack: ModelPack, threads: int) -> None:
        self.pack = pack
        self._model = Model(pack, threads)

    def translate(
        self,
        texts: Sequence[str],
        targets: Sequence[Language] | None = None,
        options: Sequence[Options] | None = None,
        is_out_of_time: Callable[[], bool] = lambda: False,
    ) -> list[Translation | Unfinished]:
        """Translate texts together.

        Args:
            texts: in the pack's source language.
            targets: the language that each becomes; the pack's first by default.
            options: of each.
            is_out_of_time: asked at every step; when it says so, texts that are not translated become `Unfinished`.

        A text that is not finished takes its own place in the result (returned, not raised), so that it costs its
        neighbours nothing. What has nothing to translate in it comes back as it is.

        Raises:
            PackError: the pack's graphs cannot be loaded.
        """
        targets = targets or [self.pack.targets[0]] * len(texts)
        options = options or [Options()] * len(texts)
        documents = [
            open_document(_replace_lone_surrogates(text), chosen.format, chosen.segmentation)
            for text, chosen in zip(texts, options, strict=True)
        ]
        drafts: dict[Language, dict[str, Draft]] = {}
        for language in dict.fromkeys(targets):
            wanted = (document for document, target in zip(documents, targets, strict=True) if target == language)
            segments = dict.fromkeys(segment for document in wanted for segment in document.segments)
            drafts[language] = self._draft(list(segments), language, is_out_of_time)
        return [
            _finish(document, drafts[target], _script(target), chosen)
            for document, target, chosen in zip(documents, targets, options, strict=True)
        ]

    def _draft(self, segments: list[str], language: Language, is_out_of_time: Callable[[], bool]) -> dict[str, Draft]:
        parts = [split_long(segment, lambda part: len(part) <= _LONGEST_SENTENCE) for segment in segments]
        sentences = [part.strip() for parts_of_segment in parts for part in parts_of_segment]
        drafts = iter(translate_protected(sentences, Drafting(self._model, language.token, is_out_of_time)))
        return {
            segment: joined("split", [next(drafts) for _ in parts_of_segment])
            for segment, parts_of_segment in zip(segments, parts, strict=True)
        }


def _finish(
    document: Document, drafts: dict[str, Draft], script: Script | None, options: Options
) -> Translation | Unfinished:
    """The text with the translations of its segments in it."""
    finished = [drafts[segment] for segment in document.segments]
    if not all(draft.is_finished for draft in finished):
        return Unfinished("there was not enough time to translate this much text.")
    if options.typography:
        style = Style(script or "Hans", options.spacing)
        finished = [
            draft.after("typography", typeset(draft.text, segment, style))
            for segment, draft in zip(document.segments, finished, strict=True)
        ]
    if script:
        finished = [_with_script_checked(draft, script) for draft in finished]
    target_tokens = sum(draft.target_tokens for draft in finished)
    return Translation(
        text=document.join([draft.text for draft in finished]),
        score=sum(draft.log_probability for draft in finished) / target_tokens if target_tokens else None,
        source_tokens=sum(draft.source_tokens for draft in finished),
        target_tokens=target_tokens,
        segments=len(finished),
        quality=_quality(finished),
        problem=next((draft.problem for draft in finished if draft.problem), None),
        trace=tuple(Trace(segment, draft.steps) for segment, draft in zip(document.segments, finished, strict=True)),
    )


def _with_script_checked(draft: Draft, script: Script) -> Draft:
    return draft if draft.problem or is_in_script(draft.text, script) else replace(draft, problem=Problem.SCRIPT)


def _quality(drafts: Iterable[Draft]) -> Quality:
    if any(draft.problem for draft in drafts):
        return Quality.SUSPECT
    return Quality.RECOVERED if any(draft.is_recovered for draft in drafts) else Quality.OK


def _script(language: Language) -> Script | None:
    """The script that a language is written in; None if it is not Chinese."""
    subtags = language.code.split("-")
    if subtags[0] == "yue" or "Hant" in subtags:
        return "Hant"
    return "Hans" if subtags[0] == "zh" else None


def _replace_lone_surrogates(text: str) -> str:
    """Half a surrogate pair, which JSON may smuggle in, has no UTF-8: U+FFFD takes its place."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
