"""Measurements: quality and speed, with the versions and the processor they were made on."""
