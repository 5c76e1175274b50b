"""What AWS Lambda loads: entry points -> service -> engine."""

__version__ = "0.1.0"
