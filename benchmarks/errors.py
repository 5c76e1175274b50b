"""The one error that a user of the benchmarks meets."""


class BenchError(Exception):
    """The benchmark cannot go on; the message says what is wrong and what to do. The command exits with 2."""
