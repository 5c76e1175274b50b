"""What can be wrong with a request, in words its sender can act on."""


class RequestError(Exception):
    """A request that is refused.

    Attributes:
        status: the HTTP status it deserves.
        message: what is wrong and what to do.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class TimeIsUp(RequestError):
    """A request that was not finished in time; nothing is wrong with it."""
