"""Whether the numbers of an English sentence are in its Chinese translation, in whatever form Chinese gives them.

Translators write 1,000 as 1000, 1 000 or 一千, 2.3 billion as 23亿, 9:30 as 9时30分 or 九点半, 3 p.m. as 15点, the
1990s as 90年代. All of these keep the number; another digit does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SQUARES_AND_CUBES = frozenset(f"{unit}{power}" for unit in ("mm", "cm", "m", "km") for power in "23")  # 平方公里
_ENGLISH_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "k": 3, "m": 6, "bn": 9}  # powers of ten
_CHINESE_SCALES = {"十": 1, "百": 2, "千": 3, "万": 4, "萬": 4, "亿": 8, "億": 8}
_CHINESE_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}


def missing_numbers(source: str, numbers: Sequence[tuple[int, int]], target: str) -> list[int]:
    """Which numbers of a source sentence its translation lacks.

    Args:
        source: the English sentence.
        numbers: where its numbers stand (start, end).
        target: its translation.

    Returns:
        Indices into `numbers`. What the source has twice must be there twice.
    """
    found = list(_values(target))
    missing: list[int] = []
    for index, (start, end) in enumerate(numbers):
        for forms in _parts(source, start, end):
            form = next((form for form in forms if form in found), None)
            if form is None:
                missing.append(index)
                break
            found.remove(form)
    return missing


def _parts(source: str, start: int, end: int) -> Iterator[list[str]]:
    """The parts of a source number, each in all the forms that count as kept."""
    if source[start:end] in _SQUARES_AND_CUBES:
        return
    stem = source[start:end].rstrip(_LETTERS + "%")
    text = stem.lstrip(_LETTERS).lstrip("-")
    scale, suffix = _after().match(source, start + len(stem)).group("scale", "suffix")  # type: ignore[union-attr] # matches nothing, too
    if not _plain().fullmatch(text):
        yield from [[text]] if text.count(".") > 1 else _parts_of_compound(text, suffix)
        return
    plain = _without_zeros(text.replace(",", ""))
    if scale is None:
        yield [plain, *_in_the_afternoon(plain, suffix), *([plain[2:]] if suffix == "s" and len(plain) == 4 else [])]
    else:
        scaled = _written(Decimal(plain).scaleb(_ENGLISH_SCALES[scale.lower()]))
        yield [scaled] if len(scale) > 2 else [scaled, plain]  # 5m may be metres


def _parts_of_compound(text: str, suffix: str | None) -> Iterator[list[str]]:
    """Parts of a time, a date, a range, a fraction. No minutes need no mention."""
    first, *rest = re.split(r"[.,:/'\u2019-]", text)
    hour = _without_zeros(first)
    yield [hour, *_in_the_afternoon(hour, suffix)]
    for part in rest:
        if ":" not in text or part.strip("0"):
            yield [_without_zeros(part), first[: len(first) - len(part)] + part]  # 1995-96 may become 1995-1996


def _in_the_afternoon(hour: str, suffix: str | None) -> list[str]:
    is_afternoon = suffix is not None and suffix[0] in "pP" and hour.isdecimal() and int(hour) < 12
    return [str(int(hour) + 12)] if is_afternoon else []


def _values(target: str) -> Iterator[str]:
    for match in _number().finditer(target):
        version, digits, scale, chinese = match.group("version", "digits", "scale", "chinese")
        if version:
            yield version
        elif chinese == "半":
            yield "30"
        elif chinese:
            yield _read_chinese(chinese)
        else:
            plain = re.sub("[,，\u00a0 ]", "", digits)
            exponent = sum(_CHINESE_SCALES[character] for character in scale or "")
            yield _written(Decimal(plain).scaleb(exponent)) if exponent else _without_zeros(plain)


def _read_chinese(numeral: str) -> str:
    """The value of a numeral in Chinese characters: 二〇一二 is 2012, 三千五百 is 3500."""
    if not any(character in _CHINESE_SCALES for character in numeral):
        return _without_zeros("".join(str(_CHINESE_DIGITS[character]) for character in numeral))
    total = section = 0  # a section is what stands before 万 or 亿
    digit: int | None = None
    for character in numeral:
        exponent = _CHINESE_SCALES.get(character)
        if exponent is None:
            digit = _CHINESE_DIGITS[character]
        elif exponent < 4:
            section += (1 if digit is None else digit) * 10**exponent
            digit = None
        else:
            total = (total + section + (digit or 0)) * 10**exponent
            section, digit = 0, None
    return str(total + section + (digit or 0))


def _without_zeros(digits: str) -> str:
    stripped = digits.lstrip("0")
    return stripped if stripped[:1].isdecimal() else "0" + stripped


def _written(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@cache
def _plain() -> re.Pattern[str]:
    return re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?")


@cache
def _after() -> re.Pattern[str]:
    """What may follow a source number and change what it becomes."""
    scales = "|".join(_ENGLISH_SCALES)
    return re.compile(rf"(?: ?(?P<scale>{scales})\b| ?(?P<suffix>[ap]\.?m\b|s\b))?", re.IGNORECASE)


@cache
def _number() -> re.Pattern[str]:
    numeral = "".join({**_CHINESE_DIGITS, **_CHINESE_SCALES})
    return re.compile(
        r"(?P<version>[0-9]+(?:\.[0-9]+){2,})"
        r"|(?P<digits>[0-9]{1,3}(?:[,，\u00a0 ][0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?)"
        f"(?: ?[多余餘]?(?P<scale>[{''.join(_CHINESE_SCALES)}]+))?|(?P<chinese>[{numeral}]+|半)"
    )
