"""The texts of a file in groups, each a message."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bulk.aws import BATCH_BYTES
from bulk.formats import Row, RowError
from bulk.jobs import Job, chunk_id

# Enough to translate together, few enough that a failure takes few texts with it.
SEGMENTS = 64
# As JSON. The function refuses more than 50,000 characters, of which each takes one byte of JSON or more.
BYTES = 40_000

# What a message can hold of text: the other fields take the rest.
_MESSAGE_TEXT = BATCH_BYTES - 4_096


@dataclass(frozen=True)
class Chunk:
    index: int
    line: int  # of the file, where the first text begins
    texts: list[str]
    is_stored: bool  # too long for a message: it goes through the bucket


def chunks(rows: Iterable[Row], most_segments: int, most_bytes: int) -> Iterator[Chunk]:
    """Group texts in order. A text of more than `most_bytes` has a chunk of its own.

    Raises:
        RowError: a text can be sent in no way.
    """
    index = 0
    line = 0
    texts: list[str] = []
    size = 0
    for row in rows:
        if row.text is None:
            continue
        text_size = len(json.dumps(row.text))
        if texts and (len(texts) == most_segments or size + text_size > most_bytes):
            yield Chunk(index, line, texts, size > _MESSAGE_TEXT)
            index, texts, size = index + 1, [], 0
        if text_size > _MESSAGE_TEXT and "\n" in row.text:
            raise RowError(
                row.line,
                f"a text of {len(row.text)} characters is too long for a message, and has line breaks: split it",
            )
        if not texts:
            line = row.line
        texts.append(row.text)
        size += text_size
    if texts:
        yield Chunk(index, line, texts, size > _MESSAGE_TEXT)


def message(job: Job, chunk: Chunk, bucket: str) -> str:
    """A chunk as the function reads it. The JSON is ASCII: SQS refuses some characters."""
    text = {"s3": {"bucket": bucket, "key": job.input_key(chunk.index)}} if chunk.is_stored else {"q": chunk.texts}
    fields = {"job": job.name, "id": chunk_id(chunk.index), **text, "source": job.source, "target": job.target}
    return json.dumps({**fields, "details": True} if job.details else fields)
