"""Finding what must not change in translation: addresses, code, placeholders, paths, numbers, emoji."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

CODE = "code"
CONTROL = "control"  # `</s>` and `>>xxx<<`: instructions to a Marian model, mere text to a user
EMAIL = "email"
EMOJI = "emoji"
HANDLE = "handle"
HASHTAG = "hashtag"
MARKUP = "markup"  # tags of HTML in plain text
NUMBER = "number"
PATH = "path"
PLACEHOLDER = "placeholder"
URL = "url"

_SYMBOLS = (  # arrows, shapes and pictures; a sequence may join them by U+200D, or choose a form by U+FE0F
    "\u203c\u2049\u2139\u2190-\u21ff\u231a-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3297\u3299"
    "\U0001f000-\U0001faff"
)
_JOINERS = "\u200d\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f"
_CJK = "\u2010-\u206f\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U0001f000-\U0003ffff"
_EXTENSIONS = (
    "avi|bat|bmp|c|cc|cfg|conf|cpp|cs|css|csv|dll|dmg|docx?|env|exe|flac|gif|gz|hpp|html?|ico|ini|ipynb|iso|jar|"
    "java|jpe?g|jsx?|json|kt|lock|log|md|mkv|mov|mp[34]|msi|npz?|onnx|pdf|php|pkl|png|pptx?|ps1|py|rar|rb|rs|rst|sh|"
    "spm|sql|srt|svg|tar|tgz|tiff?|toml|tsv|tsx?|ttf|txt|vtt|wav|webm|webp|whl|xlsx?|xml|ya?ml|zip"
)
_DOMAINS = "ai|app|biz|cn|com|de|dev|edu|eu|fr|gov|hk|info|io|jp|mil|net|nl|org|ru|tv|tw|uk|xyz"
_TAGS = (
    "a|abbr|b|big|br|center|cite|code|div|em|font|h[1-6]|hr|i|img|kbd|li|mark|ol|p|pre|q|ruby|rt|small|span|strike|"
    "strong|style|sub|sup|table|td|th|tr|tt|u|ul|wbr"
)
_IN_URL = rf"[^\s<>\"`{{}}|\\^{_CJK}]"
_NUMBER = (  # with the letters that it is written together with: IE11, COVID-19, 4x, 1990s; but 3 of 3p.m.
    r"(?:(?<![A-Za-z])(?:[A-Z][A-Za-z]*-|[A-Za-z]+))?[0-9]+(?:[.,:/'\u2019-]?[0-9]+)*+(?:%|(?![ap]\.?m\b)[A-Za-z]+)?"
)
_FORMAT = r"[-#0+]*[0-9]*(?:\.[0-9]+)?[hl]{0,2}[sdifuxXeEgGcrp@](?![A-Za-z])"  # of printf, after the per cent sign


@dataclass(frozen=True, order=True)
class Span:
    """A part of a text, in code points, its end excluded."""

    start: int
    end: int
    kind: str


def find_spans(text: str) -> list[Span]:
    """What must come through translation unchanged: in order, without overlaps, in time linear in the text's length."""
    if _sign().search(text) is None:
        return [Span(*match.span(), NUMBER) for match in _number().finditer(text)]
    spans: list[Span] = []
    for match in _any_span().finditer(text):
        kind = match.lastgroup or ""
        start, end = match.span()
        if kind == URL:
            end = start + len(_without_final_stops(match.group()))
        elif kind == PATH:
            end = start + len(match.group().rstrip(".,"))
        spans.append(Span(start, end, kind))
    return spans


def _without_final_stops(url: str) -> str:
    """A URL without the punctuation of the sentence around it; a bracket that it opened itself stays."""
    end = len(url)
    unpaired = {closing: url.count(closing) - url.count(opening) for opening, closing in ("()", "[]")}
    while end:
        last = url[end - 1]
        if unpaired.get(last, 0) > 0:
            unpaired[last] -= 1
        elif last not in ".,;:!?'*_~":
            break
        end -= 1
    return url[:end]


@cache
def _sign() -> re.Pattern[str]:
    """What every span but a number has; most sentences do not, and are spared the long search."""
    return re.compile(rf"[@#/\\`{{%$<>_&{_SYMBOLS}\u20e3]|[:.][A-Za-z]|--|\(\)")


@cache
def _number() -> re.Pattern[str]:
    return re.compile(_NUMBER)


@cache
def _any_span() -> re.Pattern[str]:
    """All kinds in one pattern, its group names being the kinds; where two begin together the first one wins.

    Time stays linear: each alternative begins with a sign of its own, or cannot begin inside a run of the characters
    that it takes, or takes a bounded number of them.
    """
    kinds = {
        CODE: r"(?<![\w`])(?:``(?!`)[^\n]+?``|`[^`\n]+`)(?!`)"
        r"|(?<![\w.])(?:[A-Za-z_][\w.]*\(\)|_*[A-Za-z0-9]++(?:_+[A-Za-z0-9]++)++_*)|(?<![\w-])--[a-z]+(?:-[a-z]+)*+(?!\w)",
        CONTROL: r"</?s>|<(?:unk|pad)>|>>[A-Za-z_-]{2,16}<<",
        URL: rf"(?<![A-Za-z0-9])(?:(?:https?|ftps?|file|wss?|s3|git|ssh)://|mailto:|www\.){_IN_URL}++"
        rf"|(?<![\w.@-])(?:[A-Za-z0-9-]++\.)+?(?:{_DOMAINS})(?![\w@-])(?!\.\w)(?:(?::[0-9]+)?[/?#]{_IN_URL}*+)?",
        EMAIL: r"(?<![\w.%+-])[\w.%+-]++@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)+",
        MARKUP: rf"</?(?:{_TAGS})(?:\s[^<>]{{0,500}})?/?>",
        PLACEHOLDER: r"\{\{[^{}\n]{1,100}\}\}|[$#]\{[^{}\n]{1,100}\}|\{[\w.:!@$\[\]-]{0,60}\}|<%[^%<>]{1,100}%>"
        rf"|%\(\w{{1,60}}\){_FORMAT}|(?<![\w%])%(?:[0-9]+\$)?{_FORMAT}|%[A-Za-z_]\w{{0,60}}%|%%"
        r"|(?<![\w$])\$[A-Za-z_]\w*+|</?[0-9A-Za-z][\w:-]{0,60}\s?/?>|(?<![\w:]):[a-z][\w+-]+:(?![\w:])"
        r"|&(?:[a-z]{2,8}|#[0-9]{1,6});",
        HANDLE: r"(?<![\w@./])@\w+(?:[.-]\w+)*+(?:/\w[\w.-]*)?",
        HASHTAG: r"(?<![\w&#/])#\w+(?:-\w+)*+",
        PATH: r"(?<![A-Za-z0-9])[A-Za-z]:[\\/](?![\s/])[^\s\"'<>|*?:;,()]*+|\\\\[\w.$-]+(?:\\[\w.$-]+)++"
        r"|(?<![\w.\\-])[\w.-]++(?:\\[\w.-]++)++"
        r"|(?<![\w/.~<-])(?:(?:~|\.{1,2})/|/(?=\w{2}|[\w.]+/))[\w.@+-]++(?:/[\w.@+*-]++)*+/?"
        r"|(?<![\w/.+-])(?:[\w.+-]++/)+[\w+-]+\.[A-Za-z][A-Za-z0-9]{0,4}\b"
        rf"|(?<![\w/.\\-])[\w-]++(?:\.[\w-]++)*?\.(?:{_EXTENSIONS})(?![\w-])(?!\.\w)|(?<![\w.])\.[a-z][a-z0-9_-]{{2,}}",
        EMOJI: rf"[0-9#*]\ufe0f?\u20e3|[{_SYMBOLS}][{_SYMBOLS}{_JOINERS}]*+",
        NUMBER: _NUMBER,
    }
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()), re.ASCII)
