"""The one exception that the bulk client raises on purpose."""


class BulkError(Exception):
    """Something cannot be done; the message says what, and what to do."""
