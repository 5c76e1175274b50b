"""HTML: what is translated in it, and how the translations go back among tags that stay as they are.

Tags, attributes, comments, scripts, code and what is marked as not to be translated come back to the byte. Blocks
end a sentence; tags inside a sentence keep their order (see `inline_markup`).
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise

from function.text.inline_markup import Item, Sentence
from function.text.pieces import is_wide
from function.text.segmentation import split
from function.text.tags import Token, tokens

# Elements that end a sentence; all others, unknown ones too, may stand in one.
# fmt: off
_BLOCKS = frozenset((
    "address", "article", "aside", "audio", "blockquote", "body", "button", "canvas", "caption", "center", "col",
    "colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
    "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend",
    "li", "link", "main", "menu", "meta", "nav", "noscript", "ol", "optgroup", "option", "p", "param", "pre", "search",
    "section", "select", "source", "summary", "table", "tbody", "td", "template", "tfoot", "th", "thead", "title", "tr",
    "track", "ul", "video",
))
_VOID = frozenset((
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link",
    "meta", "param", "source", "track", "wbr",
))
# fmt: on
_UNTRANSLATED = frozenset(("applet", "code", "kbd", "math", "object", "pre", "samp", "svg", "template", "tt", "var"))
_OBJECTS = frozenset(("area", "embed", "img", "input", "keygen"))
_FLOATS = frozenset(("br", "wbr"))
_LOOKAHEAD = 8  # tokens after a line break that are searched for its sentence
_SENTENCE_ENDS = (".", "!", "?", ":", "…", "。", "！", "？", "：")
_TO_SPACES = {ord(character): " " for character in "\t\n\r\f"}  # length stays, so that offsets do
_OBJECT = "\ufffc"


class HtmlDocument:
    """An HTML document or fragment.

    `segments` are the texts to translate: plain text of a line each, entities decoded. A sentence with tags inside is
    there as a whole and in parts, since which of them will serve is known only afterwards.
    """

    def __init__(self, text: str) -> None:
        self._parts = list(_parts(text))
        sentences = (part for part in self._parts if isinstance(part, Sentence))
        self.segments = list(dict.fromkeys(segment for sentence in sentences for segment in sentence.segments))

    def join(self, translations: Sequence[str]) -> str:
        """The document with translations in place.

        Args:
            translations: plain text for each of `segments`, which are escaped here; the segment where it stays as it
                is: a sentence without any translation comes back to the byte.

        Raises:
            ValueError: there are more or fewer translations than segments.
        """
        known = dict(zip(self.segments, translations, strict=True))
        output = [part.render(known) if isinstance(part, Sentence) else part for part in self._parts]
        for index in range(1, len(output) - 1):
            before, gap, after = output[index - 1 : index + 2]
            if gap.isspace() and gap.strip(" ") == "" and is_wide(before[-1:]) and is_wide(after[:1]):
                output[index] = ""
        return "".join(output)


def _parts(text: str) -> Iterator[str | Sentence]:
    """What stays as it is, and sentences."""
    document = list(tokens(text))
    partners = _partners(document)
    run: list[Item] = []
    index = 0
    while index < len(document):
        token = document[index]
        end = index
        if token.kind == "start" and index in partners and _is_untranslated(token):
            end = partners[index]
        raw = token.raw if end == index else "".join(inner.raw for inner in document[index : end + 1])
        if token.kind == "text":
            run += _texts(raw)
        elif _ends_sentence(token) or (token.name == "br" and not _goes_on(run, document, index)):
            yield from _sentences(run)
            yield raw
            run = []
        else:
            run.append(_item(token, raw, index, end, partners))
        index = end + 1
    yield from _sentences(run)


def _ends_sentence(token: Token) -> bool:
    return token.name in _BLOCKS if token.kind != "other" else not token.raw.startswith("<!--")


def _item(token: Token, raw: str, index: int, end: int, partners: dict[int, int]) -> Item:
    if end > index or token.name in _OBJECTS:
        return Item("object", raw, _OBJECT)
    if token.kind == "other" or token.name in _FLOATS:
        return Item("float", raw, " " if token.name == "br" else "")
    if token.kind == "start":
        return Item("open", raw, pair=index if index in partners else None)
    return Item("close", raw, pair=partners.get(index))


def _texts(raw: str) -> Iterator[Item]:
    """Text as items, each entity one of its own, so that each item is as long as its text or cannot be divided."""
    position = 0
    for entity in _entity().finditer(raw):
        if position < entity.start():
            yield Item("text", raw[position : entity.start()], raw[position : entity.start()])
        yield Item("text", entity.group(), html.unescape(entity.group()))
        position = entity.end()
    if position < len(raw):
        yield Item("text", raw[position:], raw[position:])


def _goes_on(run: Sequence[Item], document: Sequence[Token], index: int) -> bool:
    """Whether the line break at an index stands inside a sentence."""
    before = next((item.text.rstrip() for item in reversed(run) if item.text.strip()), "")
    if not before or before.endswith(_SENTENCE_ENDS):
        return False
    for token in document[index + 1 : index + _LOOKAHEAD]:
        if token.kind == "text" and token.raw.strip():
            return token.raw.lstrip()[0].islower()
        if _ends_sentence(token) or token.name == "br":
            return False
    return False


def _sentences(run: Sequence[Item]) -> Iterator[str | Sentence]:
    """The sentences between two blocks, and what stands between them.

    A tag at the edge of a sentence stays outside, unless its partner is inside.
    """
    bounds: list[tuple[int, int]] = []  # of the sentences, in characters of the text
    position = 0
    for piece in split("".join(item.text for item in run).translate(_TO_SPACES)):
        if piece.translatable:
            bounds.append((position, position + len(piece.text)))
        position += len(piece.text)
    if not bounds:
        yield from (item.raw for item in run)
        return
    items = list(_divided(run, sorted({place for bound in bounds for place in bound})))
    starts = list(accumulate((len(item.text) for item in items), initial=0))
    opened = {item.pair: start for item, start in zip(items, starts, strict=False) if item.kind == "open"}
    closed = {item.pair: start for item, start in zip(items, starts, strict=False) if item.kind == "close"}

    ranges: dict[tuple[int, int], tuple[int, int]] = {}  # of items, by sentence
    for index, item in enumerate(items):
        partner = {"open": closed, "close": opened}.get(item.kind, {}).get(item.pair) if item.pair is not None else None
        bound = _sentence_of(item, starts[index], partner, bounds)
        if bound is not None:
            ranges[bound] = (ranges.get(bound, (index, index))[0], index)
    done = 0
    for first, last in ranges.values():
        if max(first, done) <= last:
            yield "".join(item.raw for item in items[done : max(first, done)])
            yield Sentence(items[max(first, done) : last + 1])
            done = last + 1
    yield "".join(item.raw for item in items[done:])


def _sentence_of(
    item: Item, start: int, partner: int | None, bounds: Sequence[tuple[int, int]]
) -> tuple[int, int] | None:
    """The sentence that an item is in.

    Args:
        start: where the item stands, in characters of the text.
        partner: where the other tag of its element stands.
        bounds: of the sentences, in order.
    """
    place = bisect_right(bounds, (start, bounds[-1][1]))
    for bound in bounds[max(0, place - 2) : place]:
        first, end = bound
        if first < start < end or (item.text and first == start):
            return bound
        if partner is not None and first < partner < end and start in bound:
            return bound
    return None


def _divided(run: Sequence[Item], places: Sequence[int]) -> Iterator[Item]:
    """The items, cut where a sentence starts or ends inside one."""
    position = 0
    for item in run:
        end = position + len(item.text)
        inside = places[bisect_right(places, position) : bisect_left(places, end)]
        if item.kind == "text" and item.raw == item.text and inside:
            cuts = [0, *(place - position for place in inside), len(item.text)]
            for start, stop in pairwise(cuts):
                yield Item("text", item.text[start:stop], item.text[start:stop])
        else:
            yield item
        position = end


def _partners(document: Sequence[Token]) -> dict[int, int]:
    """For the start tag of each closed element its end tag, and the reverse."""
    partners: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for index, token in enumerate(document):
        if token.kind == "start" and token.name not in _VOID and not token.raw.endswith("/>"):
            opened.setdefault(token.name, []).append(index)
        elif token.kind == "end" and opened.get(token.name):
            start = opened[token.name].pop()
            partners[start], partners[index] = index, start
    return partners


def _is_untranslated(token: Token) -> bool:
    return token.name in _UNTRANSLATED or _untranslated().search(token.raw) is not None


@cache
def _entity() -> re.Pattern[str]:
    return re.compile("&(?:#[xX]?[0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,31});?")


@cache
def _untranslated() -> re.Pattern[str]:
    """The attribute translate="no", or the class notranslate, which translation services know."""
    return re.compile(
        r"\stranslate\s*=\s*[\"']?no[\"'\s/>]|\sclass\s*=\s*(?:[\"'][^\"']*(?<![\w-])notranslate(?![\w-])|notranslate[\s/>])",
        re.IGNORECASE,
    )
