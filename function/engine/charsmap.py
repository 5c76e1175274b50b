"""SentencePiece's text normalisation, exactly: the character map compiled into an spm file.

At each position the longest match is replaced, also where that parts a letter from its combining marks.
The map is a darts-clone double array over UTF-8 bytes (https://github.com/s-yata/darts-clone, unit layout),
followed by its replacement texts, each ended by a zero byte; SentencePiece stores it as `precompiled_charsmap`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SPACE_MARK = "\u2581"  # stands for a space inside pieces

_LEAF = 1 << 8
_LABEL = 0x800000FF
_VALUE = 0x7FFFFFFF
_PRINTABLE_ASCII = re.compile(r"[ -~]*")
_SPACES = re.compile(" +")


class Charsmap:
    """Normaliser with SentencePiece's defaults: outer spaces removed, runs of spaces made one, U+2581 in front.

    Args:
        data: the `precompiled_charsmap` bytes; empty means the identity rule.
        keeps_ascii: whether the map leaves printable ASCII alone, which spares most text the walk.
    """

    def __init__(self, data: bytes, *, keeps_ascii: bool) -> None:
        array_bytes = int.from_bytes(data[:4], "little")
        self._units = memoryview(data[4 : 4 + array_bytes]).cast("I")
        self._replacements = data[4 + array_bytes :]
        self._keeps_ascii = keeps_ascii

    @classmethod
    def load(cls, path: Path, *, keeps_ascii: bool) -> Charsmap:
        return cls(path.read_bytes(), keeps_ascii=keeps_ascii)

    def normalize(self, text: str) -> str:
        """The text that the unigram model segments; empty when nothing but spaces is left."""
        if self._keeps_ascii and _PRINTABLE_ASCII.fullmatch(text):
            normalized = SPACE_MARK + _SPACES.sub(SPACE_MARK, text.strip(" "))
        else:
            parts = [SPACE_MARK]
            after_space = True
            for chunk in self.chunks(text):
                kept = chunk.lstrip(" ") if after_space else chunk
                if kept:
                    parts.append(kept.replace(" ", SPACE_MARK))
                    after_space = kept.endswith(" ")
            normalized = "".join(parts)
        return normalized.rstrip(SPACE_MARK)

    def maps_ascii(self) -> bool:
        """Whether some text of printable ASCII alone is changed: a walk over all such keys."""
        nodes = [_child_offset(self._units[0])] if self._units else []
        while nodes:
            node = nodes.pop()
            for byte in range(0x20, 0x7F):
                unit = self._units[node ^ byte]
                if unit & _LABEL == byte:
                    if unit & _LEAF:
                        return True
                    nodes.append(node ^ byte ^ _child_offset(unit))
        return False

    def chunks(self, text: str) -> Iterator[str]:
        """The replacement of each longest match, and each character that matches nothing, left to right."""
        if not self._units:
            yield from text
            return
        data = text.encode("utf-8")
        position = 0
        while position < len(data):
            end, start_of_replacement = self._longest_match(data, position)
            if end > position:
                stop = self._replacements.index(0, start_of_replacement)
                yield self._replacements[start_of_replacement:stop].decode("utf-8")
            else:
                end = position + _utf8_length(data[position])
                yield data[position:end].decode("utf-8")
            position = end

    def _longest_match(self, data: bytes, position: int) -> tuple[int, int]:
        """End of the longest match and the offset of its replacement; (position, 0) when nothing matches."""
        units = self._units
        node = _child_offset(units[0])
        end, replacement = position, 0
        for index in range(position, len(data)):
            node ^= data[index]
            unit = units[node]
            if unit & _LABEL != data[index]:
                break
            node ^= _child_offset(unit)
            if unit & _LEAF:
                end, replacement = index + 1, units[node] & _VALUE
        return end, replacement


def _child_offset(unit: int) -> int:
    return (unit >> 10) << ((unit & (1 << 9)) >> 6)


def _utf8_length(first_byte: int) -> int:
    if first_byte < 0x80:
        return 1
    if first_byte < 0xE0:
        return 2
    return 3 if first_byte < 0xF0 else 4
