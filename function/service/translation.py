"""A request to translate, whoever brings it: its fields, its checks, its answer.

The fields are LibreTranslate's (https://docs.libretranslate.com); HTTP bodies and queue records share them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from function.engine.pack import Language, PackError
from function.engine.translator import Options, Translation, Translator, Unfinished
from function.service.errors import RequestError, TimeIsUp
from function.service.loading import pack, settings
from function.service.metrics import count
from function.service.settings import SettingsError
from function.text.guard import Quality

AUTO = "auto"
CHOICES = {
    "format": ("text", "html"),
    "segmentation": ("sentences", "unwrap", "none"),
    "spacing": ("keep", "none", "space"),
}

_LOGGER = logging.getLogger(__name__)

Answer = dict[str, Any]


@dataclass(frozen=True)
class TranslationRequest:
    texts: tuple[str, ...]
    is_list: bool  # whether `q` was a list, which the answer then is too
    source: str
    target: Language
    options: Options
    details: bool
    trace: bool
    alternatives: int


@cache
def translator() -> Translator:
    """The one translator of this process, made when first asked for."""
    return Translator(pack(), settings().threads)


def read_request(fields: Mapping[str, Any]) -> TranslationRequest:
    """Check a request's fields. An optional field that is null or empty counts as not sent.

    Args:
        fields: `q` (string or list of strings), `source` (a code or "auto"), `target`, and optionally `format`
            ("text" or "html"), `segmentation` ("sentences", "unwrap" or "none"), `typography` (false for none),
            `spacing` ("keep", "none" or "space", between Chinese and Latin), `details` (true for `scores`, `quality`
            and `problems`), `trace` (true to see what each stage did), `alternatives`. Others are ignored.

    Raises:
        RequestError: 400 for a missing or wrong field, 413 for too much text.
    """
    for name in ("q", "source", "target"):
        if fields.get(name) is None:
            raise RequestError(400, f"Invalid request: missing {name} parameter")
    q = fields["q"]
    texts = q if isinstance(q, list) else [q]
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            place = f"q[{index}]" if isinstance(q, list) else "q"
            raise RequestError(400, f"Invalid request: {place} must be a string, it is {_kind(text)}")
    _check_size(texts)
    source = fields["source"]
    if source != AUTO:
        _language(source, (pack().source,), "source")
    target = _language(fields["target"], pack().targets, "target")
    return TranslationRequest(
        texts=tuple(texts),
        is_list=isinstance(q, list),
        source=source,
        target=target,
        options=Options(
            format=_choice(fields, "format", Options.format),
            segmentation=_choice(fields, "segmentation", Options.segmentation),
            typography=_flag(fields, "typography", default=True),
            spacing=_choice(fields, "spacing", Options.spacing),
        ),
        details=_flag(fields, "details", default=False),
        trace=_flag(fields, "trace", default=False),
        alternatives=_whole_number(fields.get("alternatives") or 0),
    )


def preload() -> None:
    """Load the model now, if settings ask for it, and not with the first request."""
    try:
        wanted = settings().preload
    except SettingsError:  # each request will be told
        return
    if wanted:
        translator().translate(["a"])


def answer(
    requests: Sequence[TranslationRequest], is_out_of_time: Callable[[], bool] = lambda: False
) -> list[Answer | RequestError]:
    """Translate all texts of all requests together; a request that fails takes its own place and no other.

    Args:
        is_out_of_time: asked at every decoder step; requests that are not finished then fail with `TimeIsUp`.

    Raises:
        PackError: the pack cannot be used.
    """
    texts = [text for request in requests for text in request.texts]
    targets = [request.target for request in requests for _ in request.texts]
    options = [request.options for request in requests for _ in request.texts]
    try:
        results = iter(translator().translate(texts, targets, options, is_out_of_time))
    except PackError:
        for cached in (pack, translator):  # so that the next request tries again
            cached.cache_clear()
        raise
    return [_answer(request, [next(results) for _ in request.texts]) for request in requests]


def _answer(request: TranslationRequest, results: list[Translation | Unfinished]) -> Answer | RequestError:
    translations: list[Translation] = []
    for text, result in zip(request.texts, results, strict=True):
        if isinstance(result, Unfinished):
            return TimeIsUp(413, f"q is too much to translate in the time there is: {result}")
        translations.append(result)
        if settings().log_text:
            _LOGGER.info("%r became %r", text, result.text)

    count(
        Segments=sum(translation.segments for translation in translations),
        SourceTokens=sum(translation.source_tokens for translation in translations),
        TargetTokens=sum(translation.target_tokens for translation in translations),
        Recovered=sum(translation.quality == Quality.RECOVERED for translation in translations),
        Suspect=sum(translation.quality == Quality.SUSPECT for translation in translations),
    )

    def in_shape_of_q(values: list[Any]) -> Any:
        return values if request.is_list else values[0]

    content: Answer = {"translatedText": in_shape_of_q([translation.text for translation in translations])}
    if request.source == AUTO:
        # Assumed, not detected: a pack reads one language. LibreTranslate, too, says 0 when it cannot tell.
        assumed = {"confidence": 0, "language": pack().source.code}
        content["detectedLanguage"] = in_shape_of_q([assumed] * len(translations))
    if request.alternatives:
        content["alternatives"] = in_shape_of_q([[] for _ in translations])  # greedy search has one answer
    if request.details:
        content["scores"] = in_shape_of_q([translation.score for translation in translations])
    if request.details or any(translation.quality != Quality.OK for translation in translations):
        content["quality"] = in_shape_of_q([translation.quality for translation in translations])
        content["problems"] = in_shape_of_q([translation.problem for translation in translations])
    if request.trace:
        content["trace"] = in_shape_of_q([_trace(translation) for translation in translations])
    return content


def _check_size(texts: Sequence[str]) -> None:
    if len(texts) > settings().max_texts:
        raise RequestError(413, f"q holds {len(texts)} texts, a request may hold {settings().max_texts}: send fewer")
    characters = sum(map(len, texts))
    if characters > settings().max_characters:
        raise RequestError(
            413, f"q holds {characters} characters, a request may hold {settings().max_characters}: send it in parts"
        )


def _language(code: Any, languages: Sequence[Language], role: str) -> Language:
    """The language that a caller means by `code`."""
    for language in languages:
        if isinstance(code, str) and language.answers_to(code):
            return language
    known = ", ".join(language.code for language in languages)
    raise RequestError(400, f"{code} is not supported as {role}; supported: {known}")


def _trace(translation: Translation) -> list[dict[str, Any]]:
    return [
        {"segment": trace.segment, "stages": [{"stage": stage, "text": text} for stage, text in trace.steps]}
        for trace in translation.trace
    ]


def _choice(fields: Mapping[str, Any], name: str, default: str) -> Any:
    value = fields.get(name) or default
    choices = CHOICES[name]
    if value not in choices:
        raise RequestError(400, f"Invalid request: {name} must be {' or '.join(choices)}, it is {value!r}")
    return value


def _flag(fields: Mapping[str, Any], name: str, *, default: bool) -> bool:
    """Forms carry words where JSON carries true and false."""
    value = fields.get(name)
    if value is None or value == "":
        return default
    if isinstance(value, str) and value.lower() in ("true", "false", "1", "0"):
        return value.lower() in ("true", "1")
    if not isinstance(value, bool):
        raise RequestError(400, f"Invalid request: {name} must be true or false, it is {value!r}")
    return value


def _whole_number(value: Any) -> int:
    try:
        number = -1 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0:
        raise RequestError(400, f"Invalid request: alternatives must be a whole number, it is {value!r}")
    return number


def _kind(value: Any) -> str:
    """The JSON name of a value's type."""
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object")
