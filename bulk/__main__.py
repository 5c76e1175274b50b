"""Command line: `python -m bulk submit|status|collect|redrive`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bulk.aws import BATCH_BYTES, AwsError, Bucket, Queue, client, explain
from bulk.chunks import BYTES, SEGMENTS
from bulk.collect import collect
from bulk.errors import BulkError
from bulk.jobs import NAME
from bulk.output import Style
from bulk.redrive import redrive
from bulk.status import status
from bulk.submit import Options, submit

_ENVIRONMENT = "Credentials, region and endpoint are those of the usual AWS environment (AWS_PROFILE, AWS_REGION, ...)."

_GO_ON = {
    "submit": "the same command goes on where this one was",
    "collect": "the same command goes on where this one was",
    "redrive": "the same command moves the rest",
    "status": "nothing was changed",
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bulk",
        description="Translate files through the queue and the bucket of a deployment.",
        epilog=_ENVIRONMENT,
    )
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    for add_step in (_add_submit, _add_status, _add_collect, _add_redrive):
        add_step(steps)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except BulkError as error:
        words = str(error)
    except AwsError as error:
        words = explain(error)
    except OSError as error:
        words = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except KeyboardInterrupt:
        print(f"bulk {options.step}: interrupted; {_GO_ON[options.step]}.", file=sys.stderr)
        return 130
    print(f"bulk {options.step}: {words}", file=sys.stderr)
    return 2


def _add_submit(steps: Any) -> None:
    step = _step(
        steps, "submit", "send a file to the queue; prints the job's name", _submit,
        "The file is checked to its end before anything is sent. If the command is broken off, the same command, on "
        "any machine, goes on where it was; sending a chunk twice does no harm. A name stands for one file as it is: "
        "for a file that has changed, give another. Exit status: 0 all is sent, 2 it is not.",
    )  # fmt: skip
    step.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="text, a segment a line; or .jsonl, .csv, .tsv (the last two with a header)",
    )
    _add_queue(step, required=True)
    _add_bucket(step, required=True)
    step.add_argument("--job", type=_job, metavar="NAME", help="default: made of FILE's name and content")
    step.add_argument("--source", default="en", metavar="CODE", help="language of the texts (default: %(default)s)")
    step.add_argument("--target", default="zh", metavar="CODE", help="language to translate to (default: %(default)s)")
    step.add_argument("--column", metavar="NAME", help="the key or column with the text, of .jsonl, .csv and .tsv")
    step.add_argument("--details", action="store_true", help="ask for scores too")
    step.add_argument(
        "--chunk-segments",
        type=_count(1000),
        default=SEGMENTS,
        metavar="N",
        help="in a message at most (default: %(default)s)",
    )
    step.add_argument(
        "--chunk-bytes", type=_count(BATCH_BYTES // 2), default=BYTES, metavar="N",
        help="of JSON in a message at most, unless a single text has more (default: %(default)s)",
    )  # fmt: skip


def _submit(options: argparse.Namespace) -> int:
    job = submit(
        options.file,
        Queue(client("sqs"), options.queue_url),
        Bucket(client("s3"), options.bucket),
        options.job,
        Options(
            options.source, options.target, options.column, options.details, options.chunk_segments, options.chunk_bytes
        ),
    )
    print(job.name)
    return 0


def _add_status(steps: Any) -> None:
    step = _step(
        steps, "status", "tell how far a job is", _status,
        "Exit status: 0 finished, 1 chunks have failed, 3 not finished yet, 2 it cannot be told.",
    )  # fmt: skip
    _add_bucket(step, required=True)
    _add_job(step, required=True)
    _add_queue(step, required=False)


def _status(options: argparse.Namespace) -> int:
    queue = Queue(client("sqs"), options.queue_url) if options.queue_url else None
    return status(Bucket(client("s3"), options.bucket), options.job, queue, print)


def _add_collect(steps: Any) -> None:
    step = _step(
        steps, "collect", "write a job's results to a file, in order", _collect,
        "Text becomes text with the same line endings. With --input, rows of .jsonl, .csv and .tsv stay as they are "
        "and get a field more; without, the output has the translations alone, in the same format. What is written "
        "before all is there is in FILE.part, and the same command goes on with it. Exit status: 0 all is written; "
        "1 a chunk has failed; 3 a result is not there yet; 2 it cannot be done.",
    )  # fmt: skip
    _add_bucket(step, required=True)
    _add_job(step, required=True)
    step.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="file to write; one that exists is replaced"
    )
    step.add_argument("--input", type=Path, metavar="FILE", help="the file that was submitted, to add to its rows")
    step.add_argument(
        "--into", default="translation", metavar="NAME", help="the key or column that is added (default: %(default)s)"
    )
    step.add_argument(
        "--on-error", choices=("stop", "source", "blank"), default="stop",
        help="at a chunk that failed: stop; or put the source's texts (needs --input), or nothing, in place "
        "(default: %(default)s)",
    )  # fmt: skip
    step.add_argument(
        "--wait", type=_seconds, nargs="?", const=5.0, metavar="SECONDS",
        help="wait for results that are not there yet, and look every SECONDS (default: 5)",
    )  # fmt: skip
    _add_queue(step, required=False, use="to stop waiting when it has been empty for a minute")


def _collect(options: argparse.Namespace) -> int:
    return collect(
        Bucket(client("s3"), options.bucket),
        options.job,
        options.out,
        Style(options.input, options.into, options.on_error),
        options.wait,
        Queue(client("sqs"), options.queue_url) if options.queue_url else None,
    )


def _add_redrive(steps: Any) -> None:
    step = _step(
        steps, "redrive", "send dead letters to the queue again", _redrive,
        "Without --bucket and --job, SQS moves all messages by itself where it can. With --bucket they are moved one "
        "by one, and the errors that the bucket has of their chunks are deleted, so that `status` and `collect` count "
        "them as outstanding. Exit status: 0, or 2 when it cannot be done.",
    )  # fmt: skip
    _add_queue(step, required=True)
    step.add_argument("--dlq-url", required=True, metavar="URL", help="the dead-letter queue")
    _add_bucket(step, required=False)
    _add_job(step, required=False)


def _redrive(options: argparse.Namespace) -> int:
    sqs = client("sqs")
    bucket = Bucket(client("s3"), options.bucket) if options.bucket else None
    done = redrive(Queue(sqs, options.queue_url), Queue(sqs, options.dlq_url), bucket, options.job)
    print(f"moved {done.moved}, left {done.left}, errors deleted {done.errors_deleted}")
    return 0


def _step(steps: Any, name: str, words: str, run: Callable[[argparse.Namespace], int], more: str) -> Any:
    step = steps.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}. {more}", epilog=_ENVIRONMENT)
    step.set_defaults(run=run)
    return step


def _add_queue(step: Any, *, required: bool, use: str = "") -> None:
    step.add_argument("--queue-url", required=required, metavar="URL", help=f"the queue{use and ', '}{use}")


def _add_bucket(step: Any, *, required: bool) -> None:
    step.add_argument("--bucket", required=required, metavar="NAME", help="the bucket of the results")


def _add_job(step: Any, *, required: bool) -> None:
    step.add_argument("--job", type=_job, required=required, metavar="NAME", help="what `submit` printed")


def _job(text: str) -> str:
    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no name of a job: letters, digits, '.', '_' and '-', 128 at most, a letter or digit first"
        )
    return text


def _count(most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
        return int(text)

    return read


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
