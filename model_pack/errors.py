"""The one error that a user of model_pack meets."""


class ModelPackError(Exception):
    """The step cannot be done; the message says what is wrong and what to do. The command exits with 2."""
