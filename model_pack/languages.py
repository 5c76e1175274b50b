"""Which languages a checkpoint translates between, as codes and names that callers use."""

from __future__ import annotations

import langcodes

from model_pack.checkpoint import Checkpoint
from model_pack.errors import ModelPackError

Entry = dict[str, object]


def languages(checkpoint: Checkpoint) -> dict[str, object]:
    """The manifest's languages: the source, and the targets.

    Codes come from tokenizer_config.json as BCP 47 ("eng" -> "en"). A Chinese target also names its
    script, by CLDR's likely subtags ("zh" -> "zh-Hans"), since callers choose between scripts.

    Raises:
        ModelPackError: tokenizer_config.json does not name both languages.
    """
    codes = [checkpoint.tokenizer_config.get(name) for name in ("source_lang", "target_lang")]
    if not all(isinstance(code, str) and langcodes.tag_is_valid(code) for code in codes):
        raise ModelPackError(
            f"{checkpoint.path / 'tokenizer_config.json'} must name the languages as source_lang and target_lang "
            f'(such as "en" and "zh"); it has {codes[0]!r} and {codes[1]!r}.'
        )
    source, target = (langcodes.standardize_tag(str(code)) for code in codes)
    return {"source": _entry(source), "targets": [_entry(target)]}


def _entry(tag: str) -> Entry:
    language = langcodes.get(tag)
    if language.language != "zh" or language.script:
        return {"code": tag, "name": language.display_name(), "aliases": []}
    likely = language.maximize()
    code = f"{likely.language}-{likely.script}"
    return {"code": code, "name": langcodes.get(code).display_name(), "aliases": [tag]}
