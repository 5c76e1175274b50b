"""The one error that a user of layer meets."""


class LayerError(Exception):
    """The layer cannot be built; the message says what is wrong and what to do. The command exits with 2."""
