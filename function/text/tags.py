"""HTML cut into tags and text, every character in its place.

The standard library's parser raises on some malformed input and takes quadratic time on other (Python 3.11: 20 s for
40 kB of `<a '`); nor does it give end tags and comments back as they were written. This follows the tokenization of
the HTML standard (https://html.spec.whatwg.org/#tokenization) as far as it decides where a tag ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

# Elements whose content runs to their own end tag, whatever looks like a tag in it.
_RAW = frozenset(("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes"))


@dataclass(frozen=True)
class Token:
    """`other` is what has neither text nor elements in it: comments, doctypes, scripts."""

    kind: Literal["text", "start", "end", "other"]
    raw: str  # joined, the tokens of a document are the document
    name: str = ""  # of the element, in lower case


def tokens(html: str) -> Iterator[Token]:
    """Cut HTML, however malformed, into tags and text; a `<` that begins no tag is text. Takes linear time."""
    position = text_start = 0
    last_end = html.rfind(">")
    tag = _tag()
    while (position := html.find("<", position)) >= 0:
        match = tag.match(html, position) if position < last_end else None
        if match is None and tag is _tag() and position < last_end and _simple_tag().match(html, position):
            # Quotation marks hide every end from here on: from now on they do not count.
            tag = _simple_tag()
            continue
        token = _from_tag(html, match) if match else _from_declaration(html, position)
        if token is None:
            position += 1
            continue
        if text_start < position:
            yield Token("text", html[text_start:position])
        yield token
        position = text_start = position + len(token.raw)
    if text_start < len(html):
        yield Token("text", html[text_start:])


def _from_tag(html: str, tag: re.Match[str]) -> Token:
    name = tag["name"].lower()
    if tag["slash"]:
        return Token("end", tag.group(), name)
    if name in _RAW:
        closing = re.compile(rf"</{name}(?=[\s/>])[^<>]*+>", re.IGNORECASE).search(html, tag.end())
        return Token("other", html[tag.start() : closing.end() if closing else len(html)], name)
    return Token("start", tag.group(), name)


def _from_declaration(html: str, start: int) -> Token | None:
    if html.startswith("<!--", start):
        end = html.find("-->", start + 2)  # `<!-->` is a comment, too
        return Token("other", html[start : end + 3 if end >= 0 else len(html)])
    if html.startswith(("<!", "<?"), start) and (end := html.find(">", start)) >= 0:
        return Token("other", html[start : end + 1])
    return None


@cache
def _tag() -> re.Pattern[str]:
    """A start or end tag. Quotation marks count only after `=`, and only as a pair."""
    attributes = r"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+)*+"
    return re.compile(rf"<(?P<slash>/?)(?P<name>[A-Za-z][^\s/>]*+){attributes}>")


@cache
def _simple_tag() -> re.Pattern[str]:
    return re.compile(r"<(?P<slash>/?)(?P<name>[A-Za-z][^\s/>]*+)[^>]*+>")
