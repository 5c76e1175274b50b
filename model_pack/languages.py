"""Which languages a checkpoint translates between, as codes and names that callers use."""

from __future__ import annotations

import re

import langcodes

from model_pack.checkpoint import Checkpoint
from model_pack.errors import ModelPackError

Entry = dict[str, object]

_LANGUAGE_TOKEN = re.compile(r">>(\w+)<<")


def languages(checkpoint: Checkpoint) -> dict[str, object]:
    """The manifest's languages: the source, and the targets, the usual one first.

    Codes come from tokenizer_config.json and from the vocabulary's language tokens, as BCP 47 ("eng" ->
    "en", ">>cmn_Hans<<" -> "zh-Hans"). A Chinese target also names its script, by CLDR's likely subtags
    ("zh" -> "zh-Hans"), since callers choose between scripts.

    Raises:
        ModelPackError: tokenizer_config.json does not name both languages.
    """
    codes = [checkpoint.tokenizer_config.get(name) for name in ("source_lang", "target_lang")]
    if not all(isinstance(code, str) and langcodes.tag_is_valid(code) for code in codes):
        raise ModelPackError(
            f"{checkpoint.path / 'tokenizer_config.json'} must name the languages as source_lang and target_lang "
            f'(such as "en" and "zh"); it has {codes[0]!r} and {codes[1]!r}.'
        )
    source, usual = (langcodes.standardize_tag(str(code)) for code in codes)
    tokens = language_tokens(checkpoint)
    if not tokens:
        return {"source": _entry(source), "targets": [_entry(usual)]}
    targets: dict[str, Entry] = {}
    # A token with a script comes before its language alone, which would mean the likely script too.
    for token in sorted(tokens, key=lambda token: ("_" not in token, checkpoint.source_vocabulary[token])):
        entry = _entry(_tag(token), token)
        targets.setdefault(str(entry["code"]), entry)
    first = str(_entry(usual)["code"])
    return {"source": _entry(source), "targets": sorted(targets.values(), key=lambda entry: entry["code"] != first)}


def language_tokens(checkpoint: Checkpoint) -> list[str]:
    """The vocabulary's tokens such as ">>cmn_Hans<<" that name a language, in the order of their ids."""
    tokens = sorted(checkpoint.source_vocabulary, key=checkpoint.source_vocabulary.__getitem__)
    named = (token for token in tokens if _LANGUAGE_TOKEN.fullmatch(token))
    return [token for token in named if langcodes.tag_is_valid(_tag(token))]


def _tag(token: str) -> str:
    code = token.strip("><").replace("_", "-")
    return langcodes.standardize_tag(code, macro=True) if langcodes.tag_is_valid(code) else code


def _entry(tag: str, token: str | None = None) -> Entry:
    language = langcodes.get(tag)
    aliases = []
    if language.language == "zh":
        likely = language.maximize()
        tag = f"{likely.language}-{likely.script}"
        if langcodes.get("zh").maximize().script == likely.script:
            aliases = ["zh"]
    return {"code": tag, "name": langcodes.get(tag).display_name(), "aliases": aliases, "token": token}
