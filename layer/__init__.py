"""Builds the two Lambda layers, byte for byte the same from the same inputs. Needs Python and pip, nothing else."""
